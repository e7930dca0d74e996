"""Which files verification reaches: the metadata log, branches, expired snapshots; samples; what was checked before;
and maintenance beside it: what expires or is dropped meanwhile is no finding, what is wrong still is one."""

import gzip
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from harness.files import change, flipped, magic, path_of
from harness.lake import Lake
from pyspark import InheritableThread

from pyspark_iceberg_crypto import (
    ConfigurationError,
    IcebergCryptoError,
    TableNotFoundError,
    VerifyReport,
    verify_catalog,
    verify_table,
)

pytestmark = pytest.mark.catalogs("hadoop")


BY_JOBS = ("spark.iceberg-crypto.verify.files-on-driver", "0")


def data_files(lake: Lake) -> list[Path]:
    found = [path for path in lake.files() if path.suffix == ".parquet"]
    return sorted(found, key=modified)


def modified(path: Path) -> int:
    return path.stat().st_mtime_ns


def problems(report: VerifyReport) -> dict[str, str]:
    return {Path(problem.path).name: problem.code for problem in report.problems}


@pytest.mark.parametrize("deep", [False, True])
def test_plaintext_in_a_branch_or_under_a_tag(lake: Lake, deep: bool) -> None:
    table = lake.insert(lake.create(), [1])
    lake.run(f"ALTER TABLE {table} CREATE BRANCH audit")
    lake.insert(f"{table}.branch_audit", [2])
    lake.insert(table, [3])
    lake.run(f"ALTER TABLE {table} CREATE TAG first")
    lake.run(f"INSERT OVERWRITE {table} VALUES (4, 'x', 'p')")
    of_both, of_audit, of_first, _ = data_files(lake)
    with verify_table(lake.spark, table, deep=deep) as whole:
        assert whole.ok and (whole.branches, whole.tags, whole.snapshots) == (
            ["audit"],
            ["first"],
            3,
        )
        assert "in the current snapshot, 1 branch and 1 tag of" in " ".join(str(whole).split())
        paths = [Path(row.path) for row in whole.files.collect()]
    assert len(paths) == len(set(paths)), "each file once"
    assert {of_both, of_audit, of_first} < set(map(path_of, map(str, paths)))
    for victim in (of_audit, of_first):
        bytes_ = victim.read_bytes()
        change(victim, b"PAR1 plaintext")
        report = verify_table(lake.spark, table, deep=deep)
        assert problems(report) == {victim.name: "plaintext"}
        change(victim, bytes_)


def test_what_only_older_metadata_names(lake: Lake) -> None:
    """It is checked as long as it is there, with keys of older metadata, and is no problem once it is gone."""
    table = lake.insert(lake.create(write_delete_mode="merge-on-read"), [1, 2])
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    lake.run(f"INSERT OVERWRITE {table} VALUES (3, 'x', 'p')")
    old = data_files(lake)[0]
    first_list = min((lake.folder / "t" / "metadata").glob("snap-*"), key=modified)
    assert magic(first_list) == b"AGS1"
    expire = lake.java().expireSnapshots().expireOlderThan(2**62)
    expire.retainLast(1).cleanExpiredFiles(False).commit()
    lake.sql(f"REFRESH TABLE {table}")
    with verify_table(lake.spark, table, all_snapshots=True, structure=True) as report:
        assert report.ok, report
        assert old.name in {Path(row.path).name for row in report.files.collect()}
        assert report.snapshots == 1
    whole = old.read_bytes()
    change(old, b"PAR1 plaintext")
    report = verify_table(lake.spark, table, all_snapshots=True)
    assert problems(report) == {old.name: "plaintext"}
    old.unlink()
    assert verify_table(lake.spark, table, all_snapshots=True).ok
    change(old, whole)
    first_list.unlink()
    assert verify_table(lake.spark, table).ok
    logged = min((lake.folder / "t" / "metadata").rglob("*.metadata.json"), key=modified)
    logged.unlink()
    report = verify_table(lake.spark, table, all_snapshots=True)
    assert problems(report)[logged.name] == "missing"
    assert {problem.kind for problem in report.problems} <= {"metadata file"}


@pytest.mark.nightly
def test_a_sample_is_the_same_for_the_same_seed(lake: Lake) -> None:
    table = lake.create()
    lake.run(f"INSERT INTO {table} SELECT /*+ REPARTITION(40) */ id, 'x', 'p' FROM range(400)")

    def sampled(seed: int) -> set[str]:
        with verify_table(lake.spark, table, sample=0.5, seed=seed) as report:
            assert report.ok
            assert (report.sample, report.seed) == (0.5, seed)
            rows = report.files.collect()
        assert {"manifest", "manifest list"} < {row.kind for row in rows}
        return {row.path for row in rows if row.kind == "data"}

    first = sampled(1)
    assert 5 < len(first) < 35
    assert sampled(1) == first != sampled(2)


@pytest.mark.nightly
def test_it_goes_on_where_it_was(lake: Lake, tmp_path: Path) -> None:
    table = lake.insert(lake.create(), [1])
    folder = (tmp_path / "record").as_uri()
    first = verify_table(lake.spark, table, structure=True, resume=folder)
    assert first.ok, first
    lake.insert(table, [2])
    before, victim = data_files(lake)
    first_whole, whole = before.read_bytes(), victim.read_bytes()
    change(before, b"PAR1 plaintext")
    change(victim, whole[:-8])
    with verify_table(lake.spark, table, structure=True, resume=folder) as again:
        assert problems(again) == {victim.name: "truncated"}
        rows = again.files.collect()
        found = {Path(row.path).name for row in rows}
    assert len(rows) == again.file_count
    assert {before.name, victim.name} < found, "what was checked before is in the report"
    change(victim, whole)  # what was not right is checked again
    assert verify_table(lake.spark, table, structure=True, resume=folder).ok
    change(before, first_whole)
    recorded = lake.spark.read.json(f"{folder}/records/*")
    assert "key" not in "".join(recorded.columns).replace("key_id", "")

    other = lake.create("other")
    with pytest.raises(ConfigurationError, match="it is of table"):
        verify_table(lake.spark, other, structure=True, resume=folder)
    with pytest.raises(ConfigurationError, match="it is of depth structure"):
        verify_table(lake.spark, table, resume=folder)
    with pytest.raises(ConfigurationError, match="it holds files"):
        verify_table(lake.spark, table, resume=tmp_path.as_uri())
    with pytest.raises(ConfigurationError, match="in the table's own location"):
        verify_table(lake.spark, table, resume=f"{lake.folder}/t/record")


def test_a_few_recorded_files_take_no_spark_job(lake: Lake, tmp_path: Path) -> None:
    table = lake.insert(lake.create(), [1])
    record = tmp_path / "record"
    tracker = lake.spark.sparkContext.statusTracker()

    def since(report: VerifyReport, recheck: float = 1e-9) -> VerifyReport:
        before = len(tracker.getJobIdsForGroup(None))
        found = verify_table(
            lake.spark, table, deep=True, since=report, since_key_id="k1", recheck=recheck
        )
        assert len(tracker.getJobIdsForGroup(None)) == before
        return found

    first = verify_table(lake.spark, table, deep=True, resume=record.as_uri())
    signed = first.sign(lake.spark, lake.catalog, "k1")
    lake.insert(table, [2])
    old, new = data_files(lake)
    whole = old.read_bytes()
    change(old, flipped(whole))
    second = since(signed)
    assert second.ok and second.since and second.record
    assert (second.resumed_files, second.since["rechecked_files"]) == (1, 0)
    assert (second.record["files"], len(second.record["versions"])) == (2, 1)
    [problem] = since(second.sign(lake.spark, lake.catalog, "k1"), recheck=1.0).problems
    assert (Path(problem.path).name, problem.code) == (old.name, "tampered")
    assert (
        problem.hint.startswith("The report signed at 20") and " it was right at 20" in problem.hint
    )
    assert since(signed).resumed_files == 0, "it is not forgotten"
    change(old, whole)

    change(new, flipped(new.read_bytes()))
    [part] = (record / "records" / str(first.record and first.record["index"])[8:-5]).glob("*.gz")
    lines = gzip.decompress(part.read_bytes())
    part.unlink()
    part.mkdir()
    planted = lines + lines.replace(old.name.encode(), new.name.encode())
    (part / "part-0.json.gz").write_bytes(gzip.compress(planted))
    with pytest.raises(ConfigurationError, match=rf"is not what was signed: .*{part.name} is"):
        since(signed)


def test_what_a_manifest_lists_otherwise_is_read(lake: Lake, tmp_path: Path) -> None:
    table = lake.insert(lake.insert(lake.create(), [1]), [2])
    folder = (tmp_path / "record").as_uri()
    first = verify_table(lake.spark, table, deep=True, resume=folder)
    signed = first.sign(lake.spark, lake.catalog, "k1")
    java, jvm = lake.java(), lake.spark._jvm
    assert jvm is not None
    new, old = (
        java.snapshot(snapshot).addedDataFiles(java.io()).iterator().next()
        for snapshot in (java.currentSnapshot().snapshotId(), java.currentSnapshot().parentId())
    )
    other = jvm.org.apache.iceberg.DataFiles.builder(java.spec()).copy(new)
    other = other.withEncryptionKeyMetadata(old.keyMetadata()).build()
    java.newOverwrite().deleteFile(new).addFile(other).commit()
    lake.sql(f"REFRESH TABLE {table}")
    report = verify_table(
        lake.spark, table, deep=True, since=signed, since_key_id="k1", recheck=1e-9
    )
    assert report.resumed_files == 1
    assert list(problems(report)) == [Path(new.location()).name], report


@pytest.mark.nightly  # the tests above have by day what is not done by jobs
def test_what_a_signed_report_vouches_for_is_not_read_again(lake: Lake, tmp_path: Path) -> None:
    with lake.configured(*BY_JOBS):
        vouches(lake, tmp_path)


def vouches(lake: Lake, tmp_path: Path) -> None:
    table = lake.insert(lake.create(), [1])
    record, file = tmp_path / "record", tmp_path / "report.json"
    first = verify_table(lake.spark, table, deep=True, resume=record.as_uri())
    file.write_text(first.sign(lake.spark, lake.catalog, "k1").to_json())
    lake.insert(table, [2])
    old, new = data_files(lake)

    def since(report: Path | VerifyReport, recheck: float = 1e-9) -> VerifyReport:
        return verify_table(
            lake.spark, table, deep=True, since=report, since_key_id="k1", recheck=recheck
        )

    [outcomes] = record.glob("records/*/*.gz")
    lines = gzip.decompress(outcomes.read_bytes())
    planted = record / "outcomes" / "planted" / "part-0.json.gz"
    planted.parent.mkdir()
    planted.write_bytes(gzip.compress(lines.replace(old.name.encode(), new.name.encode())))

    def go_to(snapshot: int) -> None:
        lake.java().manageSnapshots().setCurrentSnapshot(snapshot).commit()
        lake.sql(f"REFRESH TABLE {table}")

    newest = lake.java().currentSnapshot()
    go_to(newest.parentId())
    july = verify_table(lake.spark, table, deep=True, resume=record.as_uri())
    go_to(newest.snapshotId())
    august = since(july.sign(lake.spark, lake.catalog, "k1"))
    assert august.since and (july.resumed_files, august.since["unsigned_files"]) == (1, 1)
    assert august.resumed_files == 1, "what July did not reach is read, though planted"

    whole = old.read_bytes()
    change(old, flipped(whole))
    second = since(file)
    assert second.ok and second.record and second.since
    assert (second.resumed_files, second.since["rechecked_files"], second.record["files"]) == (
        1,
        0,
        2,
    )
    assert not (record / "outcomes" / outcomes.parent.name).exists(), "it is in the record"
    assert "1 file was not read again: the report that master key 'k1'" in " ".join(
        str(second).split()
    )
    signed = second.sign(lake.spark, lake.catalog, "k1")
    third = since(signed, recheck=1.0)
    assert third.since and third.since["rechecked_files"] == 2
    assert problems(third) == {old.name: "tampered"}
    for report in (file, signed):
        assert problems(since(report)) == {old.name: "tampered"}, "it is not forgotten"
    change(old, whole)

    with pytest.raises(ConfigurationError, match="The record of .* is in .*record, not in"):
        verify_table(
            lake.spark,
            table,
            deep=True,
            since=file,
            since_key_id="k1",
            resume=(tmp_path / "new").as_uri(),
        )
    assert not (tmp_path / "new").exists()
    with (
        lake.configured("mapreduce.output.basename", "_unlisted"),
        pytest.raises(IcebergCryptoError, match="Results of 2 files were lost"),
    ):
        since(file)
    signed_bytes = outcomes.read_bytes()
    change(outcomes, signed_bytes + b" ")
    with pytest.raises(ConfigurationError, match=rf"is not what was signed: .*{outcomes.name} was"):
        since(file)
    outcomes.unlink()
    with pytest.raises(ConfigurationError, match=rf"{outcomes.name} is missing"):
        since(file)
    outcomes.mkdir()
    (outcomes / "part-0.json.gz").write_bytes(signed_bytes)
    with pytest.raises(ConfigurationError, match=rf"{outcomes.name} is missing"):
        since(file)
    with pytest.raises(ConfigurationError, match="no signature"):
        since(second)


@pytest.mark.nightly
def test_it_can_be_cancelled(lake: Lake, tmp_path: Path) -> None:
    """The job group's cancel ends the job and what is told of it; the next run is whole."""
    table = lake.create()
    lake.run(f"INSERT INTO {table} SELECT /*+ REPARTITION(300) */ id, 'x', 'p' FROM range(3000)")
    context = lake.spark.sparkContext
    raised: list[BaseException] = []

    def work() -> None:
        context.setJobGroup("audit", "by a test", interruptOnCancel=True)
        try:
            verify_table(lake.spark, table, deep=True)
        except IcebergCryptoError as error:
            raised.append(error)

    thread = InheritableThread(target=work)
    thread.start()
    while thread.is_alive():
        context.cancelJobGroup("audit")
        time.sleep(0.05)
    assert "cancel" in str(raised[0]).lower()
    assert not [t for t in threading.enumerate() if t.name == "audit"]
    assert verify_table(lake.spark, table, deep=True).ok


def beside(lake: Lake, verify: Callable[[], Any], opened: Path, work: Callable[[], Any]) -> Any:
    """Verifies; when that opens a file for the first time, it waits until the work is done."""
    jvm = lake.spark._jvm
    assert jvm is not None
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    storage.meet(opened.name, 2)
    with ThreadPoolExecutor(1) as pool:
        verified = pool.submit(verify)
        try:
            while storage.met() == 0 and not verified.done():
                pass
            work()
        finally:
            meet(lake, opened)
        return verified.result()


def meet(lake: Lake, opened: Path) -> None:
    """Comes as the second, whether the file is there still or not."""
    jvm = lake.spark._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(opened.as_uri())
    system = path.getFileSystem(lake.spark.sparkContext._jsc.hadoopConfiguration())
    try:
        system.open(path).close()
    except Exception as error:  # noqa: BLE001 (Py4J's)
        assert "FileNotFound" in str(error)
    finally:
        jvm.io.icebergcrypto.testing.NoChmodFileSystem.meet("/", 0)


def overwritten(lake: Lake) -> tuple[str, Path]:
    """A table of two snapshots, and the data file that only the first one has."""
    table = lake.insert(lake.create(), [1])
    lake.run(f"INSERT OVERWRITE {table} VALUES (2, 'x', 'p')")
    return table, data_files(lake)[0]


def lists(lake: Lake) -> list[Path]:
    return sorted((lake.folder / "t" / "metadata").glob("snap-*.avro"), key=modified)


def expire(lake: Lake, files: list[Path], refresh: bool = True) -> None:
    """All snapshots but the current one, and files of theirs; reads none of them."""
    table = lake.java(refresh=refresh).expireSnapshots().expireOlderThan(2**62).retainLast(1)
    table.cleanExpiredFiles(False).commit()
    for path in files:
        path.unlink()


@pytest.mark.parametrize(
    ("opened_first", "refresh"),
    [("list", True), ("manifest", True), ("data", True), ("data", False)],
)
@pytest.mark.nightly
def test_snapshots_that_expire_meanwhile(lake: Lake, opened_first: str, refresh: bool) -> None:
    table, data = overwritten(lake)
    first_list = lists(lake)[0]
    manifests = sorted((lake.folder / "t" / "metadata").glob("*-m*.avro"), key=modified)
    opened = {"list": first_list, "manifest": manifests[0], "data": data}[opened_first]
    report = beside(
        lake,
        lambda: verify_table(lake.spark, table, all_snapshots=True, structure=True),
        opened,
        lambda: expire(lake, [first_list, manifests[0], data], refresh),
    )
    assert report.ok and report.exit_code == 0, report
    with report:
        paths = {Path(row.path).name for row in report.files.collect()}
    assert data_files(lake)[0].name in paths, "what the table has was checked"
    assert data.name not in paths


@pytest.mark.parametrize("opened_first", ["list", "manifest", "data", "other manifest"])
@pytest.mark.nightly
def test_files_that_an_earlier_expiry_is_still_deleting(lake: Lake, opened_first: str) -> None:
    """The table does not change any more, and what only expired snapshots reach goes meanwhile."""
    table, data = overwritten(lake)
    first_list = lists(lake)[0]
    manifests = sorted((lake.folder / "t" / "metadata").glob("*-m*.avro"), key=modified)
    expire(lake, [])
    lake.sql(f"REFRESH TABLE {table}")
    gone = {"list": first_list, "manifest": manifests[0], "data": data}
    verify = lambda: verify_table(lake.spark, table, all_snapshots=True, structure=True)  # noqa: E731
    opened = gone.get(opened_first, manifests[-1])
    report = beside(lake, verify, opened, lambda: [path.unlink() for path in gone.values()])
    assert report.ok and report.exit_code == 0, report


@pytest.mark.parametrize("gone", ["list", "manifest"])
@pytest.mark.catalogs("hadoop")
@pytest.mark.nightly
def test_what_lists_files_goes_before_them(lake: Lake, gone: str) -> None:
    """An earlier expiry deletes in any order; the manifest is read, and then their keys are looked up."""
    table, data = overwritten(lake)
    folder = lake.folder / "t" / "metadata"
    first = min(folder.glob("*-m*.avro"), key=modified)
    path = {"list": lists(lake)[0], "manifest": first}[gone]
    expire(lake, [])
    lake.sql(f"REFRESH TABLE {table}")
    jvm: Any = lake.spark._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    storage.holdOpened(str(folder), first.name, 2)
    verify = lambda: verify_table(lake.spark, table, all_snapshots=True, structure=True)  # noqa: E731
    with ThreadPoolExecutor(1) as pool:
        verified = pool.submit(verify)
        try:
            assert storage.awaitHeld()
            path.unlink()
        finally:
            storage.release()
        report = verified.result()
    assert report.ok and data.exists(), report


@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.nightly
def test_one_of_two_expired_lists_goes_and_their_manifest_stays(lake: Lake, lost: int) -> None:
    table = lake.insert(lake.insert(lake.create(), [1]), [2])
    lake.run(f"INSERT OVERWRITE {table} VALUES (3, 'x', 'p')")
    manifests = sorted((lake.folder / "t" / "metadata").glob("*-m*.avro"), key=modified)
    expire(lake, [])
    lake.sql(f"REFRESH TABLE {table}")
    verify = lambda: verify_table(lake.spark, table, all_snapshots=True, structure=True)  # noqa: E731
    with beside(lake, verify, manifests[-1], lists(lake)[lost].unlink) as report:
        checked = {Path(row.path).name for row in report.files.collect()}
    assert manifests[0].name in checked or not report.ok, report


@pytest.mark.nightly
def test_the_snapshot_that_is_verified_expires(lake: Lake) -> None:
    """Nothing is left of what it began with: it begins again, and checks what the table has now."""
    table, old = overwritten(lake)
    first_list, new = lists(lake)[0], data_files(lake)[1]
    java = lake.java()
    newest = java.currentSnapshot().snapshotId()
    java.manageSnapshots().setCurrentSnapshot(java.currentSnapshot().parentId()).commit()
    lake.sql(f"REFRESH TABLE {table}")

    def work() -> None:
        lake.java().manageSnapshots().setCurrentSnapshot(newest).commit()
        expire(lake, [first_list, old])

    with beside(lake, lambda: verify_table(lake.spark, table), first_list, work) as report:
        assert report.ok, report
        assert new.name in {Path(row.path).name for row in report.files.collect()}
    change(new, b"PAR1 plaintext")
    assert problems(verify_table(lake.spark, table)) == {new.name: "plaintext"}


@pytest.mark.nightly
def test_what_another_snapshot_reaches_is_wrong_still(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1])
    lake.insert(table, [2])
    lake.run(f"ALTER TABLE {table} CREATE TAG kept")
    shared, opened = data_files(lake)
    lake.run(f"DELETE FROM {table} WHERE id = 2")
    newest_list = lists(lake)[-1]

    def work() -> None:
        """The snapshot through which the file was found goes, and files with it that others need."""
        lake.run(f"INSERT OVERWRITE {table} VALUES (3, 'x', 'p')")
        java = lake.java()
        gone = java.currentSnapshot().parentId()
        java.expireSnapshots().expireSnapshotId(gone).cleanExpiredFiles(False).commit()
        newest_list.unlink()
        shared.unlink()

    with lake.configured(*BY_JOBS):
        report = beside(lake, lambda: verify_table(lake.spark, table), shared, work)
    assert problems(report) == {shared.name: "missing"}
    assert opened.exists()


@pytest.mark.nightly
def test_what_expires_while_jobs_check_it(lake: Lake) -> None:
    table, data = overwritten(lake)
    verify = lambda: verify_table(lake.spark, table, all_snapshots=True)  # noqa: E731
    with lake.configured(*BY_JOBS):
        report = beside(lake, verify, data, lambda: expire(lake, [lists(lake)[0], data]))
    assert report.ok, report
    assert report.file_count == sum(one.files for one in report.counts)


@pytest.mark.nightly
def test_statistics_and_logged_metadata_that_go_meanwhile(lake: Lake) -> None:
    table, data = overwritten(lake)
    statistics = lake.with_options({"encryption.statistics": "encrypt"})
    java = lake.java()
    first = java.snapshots().iterator().next().snapshotId()
    statistics.sql(
        f"CALL {statistics.catalog}.system.compute_table_stats("
        f"table => '{lake.namespace}.t', snapshot_id => {first})"
    )
    [stats] = (lake.folder / "t" / "metadata").glob("*.stats")
    logged = sorted((lake.folder / "t" / "metadata").glob("v*.metadata.json"), key=modified)

    def work() -> None:
        expire(lake, [stats, data])
        lake.run(
            f"ALTER TABLE {table} SET TBLPROPERTIES ('write.metadata.previous-versions-max'='1',"
            " 'write.metadata.delete-after-commit.enabled'='true')"
        )

    verify = lambda: verify_table(lake.spark, table, all_snapshots=True)  # noqa: E731
    report = beside(lake, verify, logged[0], work)
    assert report.ok, report
    assert not logged[0].exists() and not stats.exists()


@pytest.mark.nightly
def test_strays_that_go_meanwhile(lake: Lake) -> None:
    """A writer deletes what it has not committed."""
    table = lake.insert(lake.create(), [1])
    folder = lake.folder / "t" / "data"
    (folder / "left.parquet").write_bytes(b"PAR1 of someone")
    stray = folder / "writing.parquet"
    stray.write_bytes(b"PAR1 of a writer")
    verify = lambda: verify_table(lake.spark, table, strays=True)  # noqa: E731
    report = beside(lake, verify, stray, stray.unlink)
    assert problems(report) == {"left.parquet": "plaintext"}
    (folder / "left.parquet").unlink()


@pytest.mark.nightly
def test_a_table_that_is_dropped_meanwhile(lake: Lake) -> None:
    """It cannot be verified; of a catalog it is no part any more."""
    other = lake.insert(lake.create("other"), [1])
    for verify in (
        lambda: verify_table(lake.spark, lake.table()),
        lambda: verify_catalog(lake.spark, f"{lake.catalog}.{lake.namespace}"),
    ):
        lake.insert(lake.create(), [1])
        opened = data_files(lake)
        data = next(path for path in opened if path.is_relative_to(lake.folder / "t"))
        drop = lambda: lake.sql(f"DROP TABLE {lake.table()} PURGE")  # noqa: E731
        try:
            report: VerifyReport = beside(lake, verify, data, drop)
        except TableNotFoundError as error:
            assert "no Iceberg table" in error.message
        else:
            assert report.ok, report
            assert [one.table for one in report.reports] == [other]  # type: ignore[attr-defined]


@pytest.mark.catalogs("jdbc")
def test_tables_that_are_renamed_meanwhile(lake: Lake) -> None:
    """They are verified under their new names, also where another table had that name; a dropped one is no part."""
    if lake.kind == "hadoop":
        pytest.skip("it renames no table")
    for name in ("a", "b", "c", "d", "e"):
        lake.insert(lake.create(name), [1])
    (opened,) = (lake.folder / "b").rglob("*.parquet")

    def rename() -> None:
        lake.sql(f"DROP TABLE {lake.table('a')}")
        lake.sql(f"ALTER TABLE {lake.table('c')} RENAME TO {lake.namespace}.a")
        lake.sql(f"DROP TABLE {lake.table('d')}")
        lake.sql(f"ALTER TABLE {lake.table('e')} RENAME TO {lake.namespace}.aa")

    name = f"{lake.catalog}.{lake.namespace}"
    report = beside(lake, lambda: verify_catalog(lake.spark, name, threads=1), opened, rename)
    assert report.ok, report
    assert {one.table: Path(one.location).name for one in report.reports} == {
        lake.table("a"): "c",
        lake.table("aa"): "e",
        lake.table("b"): "b",
    }


@pytest.mark.catalogs("jdbc")
def test_several_tables_are_in_progress(lake: Lake) -> None:
    for name in ("a", "b"):
        lake.insert(lake.create(name), [1])
    (opened,) = (lake.folder / "a").rglob("*.parquet")
    name = f"{lake.catalog}.{lake.namespace}"
    for threads in (1, 2):
        verify = partial(verify_catalog, lake.spark, name, threads=threads)
        report = beside(lake, verify, opened, partial(time.sleep, 0.5))
        a, b = report.reports
        overlap = b.started_at.rstrip("Z") < a.ended_at.rstrip("Z")
        assert report.ok and overlap == (threads == 2)
    with pytest.raises(ConfigurationError, match="threads is 65"):
        verify_catalog(lake.spark, name, threads=65)


def test_a_listed_table_that_no_load_finds(hadoop: Lake) -> None:
    """Hadoop lists folders. It was not dropped: it is not checked, and the catalog is not all right."""
    lake = hadoop
    lake.insert(lake.create(), [1])
    listed = lake.folder / "ghost" / "metadata" / "copied.metadata.json"
    listed.parent.mkdir(parents=True)
    listed.write_text("{}")
    try:
        report = verify_catalog(lake.spark, f"{lake.catalog}.{lake.namespace}")
        rows = lake.sql(
            f"CALL {lake.catalog}.system.verify_encryption(namespace => '{lake.namespace}')"
        )
    finally:
        listed.unlink()
    assert report.exit_code == 2 and [one.ok for one in report.reports] == [True]
    assert [one["table"] for one in report.not_checked] == [lake.table("ghost")]
    assert [(row.table, row.code) for row in rows if row.unchecked] == [
        (lake.table("ghost"), "unreadable")
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sample": 0}, "share of the files"),
        ({"sample": 1.01}, "share of the files"),
        ({"sample": float("nan")}, "share of the files"),
        ({"sample": "half"}, "is not a number"),
        ({"resume": " "}, "resume is empty"),
        ({"resume": "nosuch://x/y"}, "cannot be used to resume"),
    ],
)
def test_bad_arguments(lake: Lake, arguments: dict[str, Any], words: str) -> None:
    table = lake.create()
    with pytest.raises(IcebergCryptoError, match=words):
        verify_table(lake.spark, table, **arguments)


@pytest.mark.catalogs("rest")
def test_a_catalog_that_does_not_start(lake: Lake) -> None:
    """Its own error, not one about a namespace of Spark's catalog."""
    table = lake.create()
    broken = lake.with_options({"encryption.kms-type": "nosuch"})
    with pytest.raises(ConfigurationError, match="nosuch"):
        verify_table(lake.spark, table.replace(lake.catalog, broken.catalog))
