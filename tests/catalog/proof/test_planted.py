"""Each kind of damage, planted in each kind of file: exactly that is found, and nothing on the whole table."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.files import change, changed, flipped
from harness.lake import FILES_ON_DRIVER, Lake

from pyspark_iceberg_crypto import VerifyReport, verify_table

pytestmark = pytest.mark.catalogs("hadoop")

PLAINTEXT = {
    "data": b"PAR1",
    "deletion vector": b"PFA1",
    "manifest": b"Obj\x01",
    "manifest list": b"Obj\x01",
    "statistics": b"PFA1",
    "partition statistics": b"PAR1",
}
"""What each kind of file starts with where nothing is encrypted."""

Files = dict[str, Path]
"""Files by their kind."""


@pytest.mark.nightly
@pytest.mark.parametrize("on_driver", ["50", "0"])
def test_exactly_what_was_planted_is_found(lake: Lake, on_driver: str) -> None:
    """One kind of damage after the other, each in a file of each kind, none of which is needed to find another."""
    lake = lake.with_options({"encryption.statistics": "encrypt"})
    table, (first, last) = filled(lake, "t", 2)
    _, (other,) = filled(lake, "other", 1)
    # A damaged one hides what only it lists.
    files = last | {kind: first[kind] for kind in ("manifest", "manifest list")}
    older = first | {kind: last[kind] for kind in ("manifest", "manifest list")}
    whole = {kind: path.read_bytes() for kind, path in files.items()}

    def verify(depth: str, strays: bool = False) -> VerifyReport:
        with lake.configured(FILES_ON_DRIVER, on_driver):
            options = {depth: True} if depth else {}
            return verify_table(lake.spark, table, all_snapshots=True, strays=strays, **options)

    clean = verify("deep", strays=True)
    assert clean.ok, clean
    assert set(files) == set(PLAINTEXT) < {count.kind for count in clean.counts}

    def found_after(content: dict[str, bytes | None], depth: str, *codes: str) -> None:
        with changed({files[kind]: content[kind] for kind in PLAINTEXT}):
            assert_found(verify(depth), files, *codes)

    elsewhere = ("tampered", "truncated", "appended")  # where lengths differ, that is found first
    found_after({kind: flipped(content) for kind, content in whole.items()}, "deep", "tampered")
    found_after({kind: content[:-3] for kind, content in whole.items()}, "structure", "truncated")
    found_after({kind: other[kind].read_bytes() for kind in files}, "deep", *elsewhere)
    found_after({kind: older[kind].read_bytes() for kind in files}, "deep", *elsewhere)
    plaintext = {kind: PLAINTEXT[kind] + content[4:] for kind, content in whole.items()}
    found_after(plaintext, "", "plaintext")
    found_after(dict.fromkeys(files), "", "missing")
    with denied(lake, *files.values()):
        assert_found(verify(""), files, "unreadable")
    stray = lake.folder / "t" / "data" / "stray.parquet"
    stray.write_bytes(plaintext["data"])
    assert_found(verify("", strays=True), {"stray": stray}, "plaintext")
    change(stray, None)
    assert verify("deep", strays=True).ok


def assert_found(report: VerifyReport, files: Files, *codes: str) -> None:
    """Exactly these are reported, each as its kind, with one of the codes."""
    assert not report.ok
    assert {(problem.kind, Path(problem.path).name) for problem in report.problems} == {
        (kind, path.name) for kind, path in files.items()
    }, report
    assert len(report.problems) == len(files)
    assert {problem.code for problem in report.problems} <= set(codes), report
    for problem in report.problems:
        assert problem.unchecked == ("unreadable" in codes)
        assert ("says nothing about the file" in problem.hint) == problem.unchecked


def filled(lake: Lake, name: str, times: int) -> tuple[str, list[Files]]:
    """A table, and the files of each kind that were written first each time that it got rows."""
    table = lake.create(name, partition="part", write_delete_mode="merge-on-read")
    before: set[Path] = set()
    written = []
    for start in range(times):
        lake.insert(table, range(3 * start, 3 * start + 3))
        new: Files = {}
        for path in set(lake.files(name)) - before:
            new.setdefault(kind_of(path), path)
        lake.run(f"DELETE FROM {table} WHERE id = {3 * start}")
        for procedure in ("compute_table_stats", "compute_partition_stats"):
            lake.call(procedure, name)
        everything = set(lake.files(name))
        for path in everything - before:
            new.setdefault(kind_of(path), path)
        before = everything
        written.append(new)
    return table, written


def kind_of(path: Path) -> str:
    """As Iceberg names files."""
    if path.suffix == ".avro":
        return "manifest list" if path.name.startswith("snap-") else "manifest"
    if path.suffix == ".parquet":
        return "data" if "data" in path.parts[-3:] else "partition statistics"
    return {".puffin": "deletion vector", ".stats": "statistics"}[path.suffix]


@contextmanager
def denied(lake: Lake, *files: Path) -> Iterator[None]:
    """The storage denies reading these files meanwhile."""
    assert lake.spark._jvm is not None
    system = lake.spark._jvm.java.lang.System
    system.setProperty("io.icebergcrypto.testing.denied", ",".join(path.name for path in files))
    try:
        yield
    finally:
        system.clearProperty("io.icebergcrypto.testing.denied")
