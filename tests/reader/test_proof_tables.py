"""Whole tables verified in Python: golden tables are right, and an attack on a file has the code that Java gives it."""

import gzip
import io
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow
import pyarrow.parquet
import pytest
from harness.encrypted_tables import Writer
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from tamper.attacks import ATTACKS, Sources

from pyspark_iceberg_crypto.errors import IcebergCryptoError, KmsUnavailableError
from pyspark_iceberg_crypto.reader import _document
from pyspark_iceberg_crypto.reader._ags1 import DecryptedStream
from pyspark_iceberg_crypto.reader._checks import Loaded
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._keys import TableKeys
from pyspark_iceberg_crypto.reader.proof._opened import Source, opened
from pyspark_iceberg_crypto.reader.proof._report import CheckedFile, ProofReport
from pyspark_iceberg_crypto.reader.proof._subject import Subject
from pyspark_iceberg_crypto.reader.proof._tree import Listed, Tree
from pyspark_iceberg_crypto.reader.proof._verify import Options, verify
from pyspark_iceberg_crypto.schemas import report_schema
from reader import golden as golden_tables
from reader.golden import KINDS, Golden

ALL_KINDS = {
    *("data", "deletion vector", "manifest", "manifest list", "metadata file"),
    *("statistics", "partition statistics"),
}
Tables = dict[str, Golden]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables of the newest build, one of Parquet and one of Avro."""
    folder = tmp_path_factory.mktemp("golden")
    return {kind: Golden.unpacked(kind, folder / kind) for kind in KINDS}


@contextmanager
def changed(path: Path, content: bytes) -> Iterator[None]:
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def wrong(report: ProofReport) -> list[CheckedFile]:
    return [file for file in report.files if file.problem]


@pytest.mark.parametrize("kind", KINDS)
def test_golden_tables(kind: str, tmp_path: Path) -> None:
    golden = Golden.unpacked(kind, tmp_path)
    now = golden.verify("deep")
    assert (now.ok, now.file_count, now.exit_code) == (True, 15, 0)
    assert {file.kind for file in now.files} == ALL_KINDS - {"metadata file"}
    every = golden.verify("deep", all_snapshots=True)
    assert (every.ok, every.problems) == (True, [])
    assert {file.kind for file in every.files} == ALL_KINDS
    below = {path.name for path in tmp_path.glob(f"tables/{kind}/db/t/**/*") if path.is_file()}
    reached = {file.path.rpartition("/")[2] for file in every.files}
    assert reached == below - {"version-hint.text"}, "all that there is"
    assert (now.metadata_authenticated, now.branches, now.tags) == (True, ["work"], ["first"])
    assert every.byte_count == sum(golden.local(one.path).stat().st_size for one in every.files)
    told = json.loads(every.to_json())
    jsonschema.validate(told, report_schema())
    assert ProofReport.of(told) == every


def test_the_report_says_what_was_checked(tables: Tables) -> None:
    golden = tables["hadoop"]
    document = golden.subject().document
    report = golden.verify("magic")
    assert report.table_uuid == document["table-uuid"]
    assert report.snapshot_ids[0] == document["current-snapshot-id"] == report.current_snapshot_id
    assert len(report.snapshot_history) == len(document["snapshots"]) == 4
    assert report.snapshot_history[0].files == 2
    assert (report.kms or "").startswith("keystore")
    assert report.versions.keys() == {"iceberg_crypto", "pyiceberg", "python"}
    assert "All 15 files in the current snapshot" in str(report)
    assert "<!doctype html>" in report.to_html().lower()


def sources(tables: Tables, kind: str, form: str) -> Sources:
    golden = tables[form]
    report = golden.verify("magic", all_snapshots=True)
    target, *others = [file for file in report.files if file.kind == kind]
    other = tables["jdbc" if form == "hadoop" else "hadoop"]
    found = [
        golden.local(one.path).read_bytes() for one in others
    ] or [  # with one vector, another AGS1 file
        golden.local(golden.one("manifest").path).read_bytes()
    ]
    assert target.kind == kind
    plaintext = b"Obj\x01, or whatever it is in plaintext"
    if kind == "data" and form == "hadoop":
        out = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), out, store_schema=False)
        plaintext = out.getvalue()
    same = other.local(other.one(kind).path).read_bytes()
    return Sources(found[0], same, found[-1], plaintext)


PLAIN_HEADER = {"plaintext", "unreadable", "tampered", "wrong-format"}
# An attack that leaves a file's length may also hit its first bytes, which are in plaintext.
CODES = {
    "bit flip at a random position": PLAIN_HEADER,
    "up to 200 bytes zeroed": PLAIN_HEADER,
    "everything but the header overwritten with random bytes": {"tampered"},
    "truncated to zero bytes": {"truncated"},
    "one byte appended": {"appended"},
    "a copy of its last block appended": {"appended"},
    "a block removed": {"truncated"},
    "a block duplicated": {"appended"},
    "two blocks swapped": {"tampered"},
    "a block copied over another": {"tampered"},
    "another file of the table": {"truncated", "appended", "tampered"},
    "a file of an older snapshot": {"truncated", "appended", "tampered"},
    "a file of another table": {"truncated", "appended", "wrong-format"},
    "a file of another table, padded to the same length": {"tampered", "wrong-format"},
    "another file of the table, padded to the same length": {"tampered"},
    "a file of an older snapshot, padded to the same length": {"tampered"},
    "a plaintext file": {"plaintext"},
    "a plaintext file of the same length": {"plaintext"},
}


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        *(
            pytest.param("hadoop", kind, marks=pytest.mark.nightly)
            for kind in ("data", "manifest list", "deletion vector")
        ),
        *(("jdbc", kind) for kind in ("data", "manifest")),
    ],
)
def test_attacks(tables: Tables, form: str, kind: str) -> None:
    golden = tables[form]
    target = golden.one(kind)
    path, finds = golden.local(target.path), sources(tables, kind, form)
    before, rng = path.read_bytes(), random.Random(f"20261127-{form}-{kind}")
    subject, done = golden.subject(), 0
    every = list(ATTACKS.items())
    for attack, make in every if kind == "data" else every[len(kind) % 2 :: 2]:
        after = make(before, finds, rng)
        if after is None or after == before:
            continue
        with changed(path, after):
            report = verify(replace(subject, reload=lambda: subject), Options("deep", threads=2))
        done += 1
        expected = CODES["truncated to zero bytes"] if "truncated" in attack else CODES[attack]
        assert [file.path for file in wrong(report)] == [target.path], attack
        assert wrong(report)[0].code in expected, f"{attack}: {wrong(report)}"
        assert (report.ok, report.exit_code) == (False, 2 if report.unchecked_count else 1)
    assert done > (12 if kind == "data" else 6)
    assert golden.verify("deep").ok, "the file that was put back is wrong"


def test_a_file_that_leads_to_others(tables: Tables) -> None:
    """What it lists is not checked, and the report says so, whatever the depth."""
    golden = tables["jdbc"]
    whole = golden.verify("magic")
    for kind, nth in (("manifest", -1), ("manifest list", 0)):  # which list a file in force
        target = [file for file in whole.files if file.kind == kind][nth]
        path = golden.local(target.path)
        for depth, content, code, words in (
            ("magic", path.read_bytes()[:-1], "truncated", "what it lists cannot be read: Table"),
            ("deep", path.read_bytes()[:-1], "truncated", "it was cut off; what it lists was not"),
            ("magic", b"Obj\x01", "plaintext", "starts with AVRO; what it lists was not checked"),
        ):
            with changed(path, content):
                report = golden.verify(depth)
            (found,) = wrong(report)
            assert (found.code, found.path) == (code, target.path)
            assert words in (found.problem or "")
            assert report.file_count < whole.file_count


def test_files_that_are_gone(tables: Tables) -> None:
    golden = tables["hadoop"]
    for kind in ("data", "manifest", "manifest list", "statistics"):
        target = golden.one(kind)
        path = golden.local(target.path)
        away = path.rename(path.with_name("away"))
        try:
            report = golden.verify("deep")
        finally:
            away.rename(path)
        (found,) = wrong(report)
        assert (found.code, found.unchecked, report.exit_code) == ("missing", False, 1)
        assert (found.problem or "").startswith("it does not exist")


class Failing:
    """A storage that fails on some files."""

    def __init__(self, golden: Golden, name: str, error: Exception, there: bool = True) -> None:
        self.golden, self.name, self.error, self.there = golden, name, error, there

    def new_input(self, location: str) -> Any:
        stored = self.golden.new_input(location)
        return _Broken(stored, self) if location.endswith(self.name) else stored


class _Broken:
    def __init__(self, stored: Any, of: Failing) -> None:
        self.location, self._of = stored.location, of

    def __len__(self) -> int:
        raise self._of.error

    def exists(self) -> bool:
        return self._of.there

    def open(self, seekable: bool = True) -> Any:
        raise self._of.error


@pytest.mark.parametrize("error", [OSError("connection reset"), FileNotFoundError("no access")])
def test_storage_that_fails(tables: Tables, error: Exception) -> None:
    """A failure accuses nobody, not even one that looks as if the file were gone, which the storage then denies."""
    golden = tables["hadoop"]
    target = golden.one("data")
    for there, code in ((True, "unreadable"), (False, "missing")):
        storage = Failing(golden, target.path.rpartition("/")[2], error, there)
        report = verify(replace(golden.subject(), storage=storage), Options("deep"))
        (found,) = wrong(report)
        assert (found.code, report.exit_code) == (code, 2 if there else 1)
        said = f"it could not be read: {type(error).__name__}: {error}"
        assert found.problem == (said if there else "it does not exist")


def test_a_kms_that_fails(tables: Tables) -> None:
    class Down:
        def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
            raise KmsUnavailableError("the KMS is down", "start it")

    golden = tables["hadoop"]
    subject = golden.subject()
    keys = TableKeys("lake.db.t", subject.document, Down())  # type: ignore[arg-type]
    report = verify(replace(subject, keys=keys), Options("deep"))
    assert report.exit_code == 2
    assert {file.code for file in wrong(report)} == {"unreadable"}
    assert "the KMS is down" in (wrong(report)[0].problem or "")


def edited(subject: Subject, **members: Any) -> Subject:
    """The same table with other metadata, which nobody has checked."""
    document = {**subject.document, **members}
    loaded = Loaded(subject.loaded.table, subject.loaded.location, document, subject.loaded.stored)
    keys = TableKeys(loaded.table, document, subject.client)
    return replace(subject, loaded=loaded, keys=keys)


def test_keys_that_are_gone_from_the_metadata(tables: Tables) -> None:
    subject = tables["hadoop"].subject()
    kept = [one for one in subject.document["encryption-keys"] if one["encrypted-by-id"] == "k1"]
    report = verify(edited(subject, **{"encryption-keys": kept}), Options("deep"))
    assert {file.code for file in wrong(report)} == {"no-key"}
    assert {file.kind for file in wrong(report)} == {
        "manifest list",
        "partition statistics",
        "statistics",
    }
    report = verify(edited(subject, **{"encryption-keys": []}), Options("deep"))
    assert "the KEK" not in report.to_json()


def test_a_table_that_is_not_encrypted(tables: Tables) -> None:
    subject = tables["hadoop"].subject()
    bare = edited(subject, **{"properties": {}, "encryption-keys": [], "snapshots": []})
    report = verify(bare, Options())
    (problem,) = report.problems
    assert (problem.kind, problem.code, report.exit_code) == ("table", "plaintext", 1)
    assert "CALL lake.system.encrypt_table(table => 'lake.db.t', " in problem.hint
    assert report.metadata_authentication == "the table is not encrypted"


def test_a_table_that_was_encrypted_in_place(tables: Tables) -> None:
    """Its plaintext from before is checked with all snapshots, and other metadata does not lead astray."""
    golden = tables["jdbc"]
    subject = golden.subject()
    other = golden.local(subject.loaded.location).with_name("other.metadata.json")
    other.write_text(json.dumps({"format-version": 2, "location": "x", "table-uuid": "another"}))
    location = f"{subject.loaded.location.rpartition('/')[0]}/other.metadata.json"
    properties = {**subject.document["properties"], "encryption.plaintext-metadata": location}
    report = verify(edited(subject, properties=properties), Options("magic", True))
    (found,) = wrong(report)
    assert (found.path, found.code) == (location, "unreadable")
    assert report.plaintext_metadata == location
    other.unlink()
    assert verify(edited(subject, properties=properties), Options("magic", True)).ok, "purged"


def test_metadata_files_of_the_log(tables: Tables) -> None:
    golden = tables["hadoop"]
    first = golden.subject().document["metadata-log"][0]["metadata-file"]
    for content, words in (
        (b"\x1f\x8b", "it is not table metadata: "),
        (b"", "it is not table metadata: "),
    ):
        with changed(golden.local(first), content):
            (found,) = wrong(golden.verify("magic", True))
        assert (found.path, found.code, found.kind) == (first, "tampered", "metadata file")
        assert (found.problem or "").startswith(words)


def test_a_snapshot_that_expires_meanwhile(tables: Tables) -> None:
    """Its manifest list is gone: nobody is accused, if the table does not have it any more."""
    golden = tables["jdbc"]
    subject = golden.subject()
    gone = next(one for one in subject.document["refs"] if one == "first")
    of_tag = subject.document["refs"][gone]["snapshot-id"]
    snapshots = [one for one in subject.document["snapshots"] if one["snapshot-id"] != of_tag]
    refs = {name: one for name, one in subject.document["refs"].items() if name != gone}
    now = edited(subject, **{"snapshots": snapshots, "refs": refs, "last-updated-ms": 1})
    lists = {one["snapshot-id"]: one["manifest-list"] for one in subject.document["snapshots"]}
    path = golden.local(lists[of_tag])
    away = path.rename(path.with_name("away"))
    try:
        (found,) = wrong(verify(subject, Options("deep")))
        assert (found.code, found.kind) == ("missing", "manifest list")
        report = verify(replace(subject, reload=lambda: now), Options("deep"))
        assert report.ok, report
        assert (report.file_count, report.snapshots) == (14, 2)
        other = edited(now, **{"table-uuid": "another"})
        with pytest.raises(IcebergCryptoError, match="dropped while it was verified"):
            verify(replace(subject, reload=lambda: other), Options("deep"))
    finally:
        away.rename(path)


class Deleting(PyArrowFileIO):
    """A storage in which a file is deleted as soon as it was said to be there."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def new_input(self, location: str) -> Any:
        stored = super().new_input(location)
        return Stored(self.path, location) if location == self.path.as_uri() else stored


class Stored(golden_tables.Stored):
    def exists(self) -> bool:
        there = super().exists()
        self.path.unlink(missing_ok=True)
        return there


@pytest.mark.parametrize("what", ["list", "manifest", "data"])
@pytest.mark.parametrize("depth", ["magic", "deep"])
def test_files_that_an_earlier_expiry_is_still_deleting(
    tmp_path: Path, what: str, depth: str
) -> None:
    """The table does not change any more, and nobody is accused of what only expired snapshots reach."""
    writer = Writer(tmp_path / "t", Schema(NestedField(1, "id", LongType(), required=False)))
    data, old = writer.append([{"id": 1}]).path, writer.location
    paths = {"list": writer.list, "data": data}
    paths["manifest"] = next(writer.metadata_folder.glob("*-m0.avro"))
    writer.manifests = []
    writer.append([{"id": 2}])
    del writer.document["snapshots"][0]
    writer.document["metadata-log"] = [{"metadata-file": old, "timestamp-ms": 1}]
    source = Source(writer.write(), kms=writer.kms)
    assert verify(opened(source, True), Options(depth, True)).file_count == 8
    storage = Deleting(paths[what])
    report = verify(replace(opened(source, True), storage=storage), Options(depth, True))
    assert report.ok and not paths[what].exists(), report


def test_what_only_the_metadata_knows(tables: Tables) -> None:
    """Statistics of a snapshot that expired, and snapshots that list their manifests in the metadata itself."""
    golden = tables["jdbc"]
    subject = golden.subject()
    plain = {"snapshot-id": 7, "statistics-path": subject.loaded.location, "file-size-in-bytes": 9}
    of = edited(subject, statistics=[*subject.document["statistics"], plain])
    (found,) = wrong(verify(of, Options("magic", True)))
    assert (found.kind, found.code) == ("statistics", "plaintext")
    assert verify(of, Options("magic")).ok, "of what branches and tags have"

    first = subject.document["metadata-log"][0]["metadata-file"]
    older = json.loads(_document.text(first, golden.local(first).read_bytes()))
    old = {"snapshot-id": 7, "timestamp-ms": 1, "manifests": ["viewfs://golden/m.avro"]}
    content = json.dumps({**older, "snapshots": [old]}).encode()
    with changed(golden.local(first), gzip.compress(content) if ".gz." in first else content):
        (found,) = wrong(verify(subject, Options("magic", True)))
    assert (found.path, found.code, found.unchecked) == (first, "unreadable", True)
    refs = {**subject.document["refs"], "old": {"snapshot-id": 7, "type": "tag"}}
    of = edited(subject, snapshots=[*subject.document["snapshots"], old], refs=refs)
    for all_snapshots in (False, True):
        (found,) = wrong(verify(of, Options("magic", all_snapshots)))
        assert (found.path, found.code) == (subject.loaded.location, "unreadable")


def test_what_is_lost_stays_an_accusation_when_the_table_changes(tables: Tables) -> None:
    golden = tables["jdbc"]
    subject = golden.subject()
    now = edited(subject, **{"last-updated-ms": 1})
    path = golden.local(golden.one("data").path)
    with changed(path, path.read_bytes()[:-1]):
        report = verify(replace(subject, reload=lambda: now), Options("deep"))
    assert [file.code for file in wrong(report)] == ["truncated"]


def test_keys_of_files_without_length(tables: Tables) -> None:
    """As iceberg-rust writes them: what lists the file may give its length, the metadata gives none."""
    golden = tables["jdbc"]
    subject = golden.subject()
    tree = Tree("lake.db.t", golden, subject.keys)
    named = next(iter(golden.verify("magic").files)).path
    assert tree.stored(named).exists()
    document = subject.document
    current = next(
        one
        for one in document["snapshots"]
        if one["snapshot-id"] == document["current-snapshot-id"]
    )
    key = subject.keys.of_manifest_list(
        current["key-id"], ExpectedFile("t", current["manifest-list"])
    )
    without = replace(key, length=None)
    stored = golden.new_input(current["manifest-list"])
    whole = tree._decrypted(stored, -1, key)
    assert isinstance(whole, DecryptedStream)
    assert tree._decrypted(stored, -1, without).read() == whole.read()


def test_no_key_is_shown(tables: Tables) -> None:
    subject = tables["jdbc"].subject()
    assert "secret" not in repr(Listed("data", "p", "AVRO", 1, b"secret"))
    assert "unwrap" not in repr(subject)
    told = tables["jdbc"].verify("deep", True).to_json()
    for one in subject.document["encryption-keys"]:
        assert one["encrypted-key-metadata"] not in told


def test_progress(tables: Tables) -> None:
    told: list[tuple[str, int, int]] = []
    golden = tables["hadoop"]
    options = Options("deep", threads=1, progress=lambda *now: told.append(now))
    report = verify(golden.subject(), options)
    assert told[-1][1:] == (report.file_count, report.byte_count)
    assert [files for _, files, _ in told] == list(range(1, report.file_count + 1))
