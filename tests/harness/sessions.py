"""A Spark session in a process of its own: with other jars or another master, or a client of Spark Connect."""

import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import kms_metrics, verify_folder, verify_table

SECONDS = 300  # for one call
_session: list[Any] = []  # in that process


class OtherSession:
    """Started with a configuration; `spark.remote` makes it a client of Spark Connect. Ends with its block."""

    def __init__(
        self,
        conf: Mapping[str, str],
        environment: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
    ):
        self._seconds = seconds
        self._process = ProcessPoolExecutor(1, get_context("spawn"))
        try:
            self.do(_start, dict(conf), dict(environment or {}))
        except BaseException:
            self._process.shutdown()  # no session, and no block that would end it
            raise

    def do(self, work: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """What `work(session, ...)` returns there; it must be of a module of the harness.

        Raises:
            RuntimeError: its error, with the stack trace.
        """
        return self._process.submit(_run, work, arguments, options).result(self._seconds)

    def sql(self, statement: str, where: str = "true") -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.do(_rows, statement, where)
        return rows

    def verify(self, table: str, **options: Any) -> dict[str, Any]:
        """The report of verify_table."""
        report: dict[str, Any] = self.do(_report, table, **options)
        return report

    def verify_folder(self, uri: str) -> dict[str, Any]:
        report: dict[str, Any] = self.do(_report_of_folder, uri)
        return report

    def __enter__(self) -> "OtherSession":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.submit(_stop)
        self._process.shutdown()


def _run(work: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    try:
        return work(*_session, *arguments, **options)
    except Exception:  # noqa: BLE001 (Java's do not travel)
        raise RuntimeError(traceback.format_exc()) from None


def _start(conf: dict[str, str], environment: dict[str, str]) -> None:
    os.environ.update(environment)
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    _session.append(builder.getOrCreate())


def _stop() -> None:
    for session in _session:
        session.stop()


def _rows(spark: SparkSession, statement: str, where: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in spark.sql(statement).where(where).collect()]


def _report(spark: SparkSession, table: str, **options: Any) -> dict[str, Any]:
    with verify_table(spark, table, progress=False, **options) as report:
        return report.to_dict()


def _report_of_folder(spark: SparkSession, uri: str) -> dict[str, Any]:
    with verify_folder(spark, uri, progress=False) as report:
        return report.to_dict()


def joined(spark: SparkSession, catalog: str, tables: Sequence[str]) -> dict[str, Any]:
    """Join tables by their ids, on storage where their metadata files wait for each other, up to 20 seconds.

    Returns:
        The ids; how often metadata files were opened, which waited for each other; how often the KMS was asked to
        unwrap a key.
    """
    jvm: Any = spark._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    first, *others = (f"{catalog}.{table}" for table in tables)
    before = kms_metrics(spark, catalog).unwrap_calls
    storage.meet(".metadata.json", len(tables))
    try:
        query = " ".join([f"SELECT id FROM {first}", *(f"JOIN {one} USING (id)" for one in others)])
        ids = sorted(row.id for row in spark.sql(query).collect())
        return {
            "ids": ids,
            "met": storage.met(),
            "unwraps": kms_metrics(spark, catalog).unwrap_calls - before,
        }
    finally:
        storage.meet("/", 0)


def remove_orphans(spark: SparkSession, table: str) -> list[str]:
    """Deletes what no metadata reaches, however new, as the table's FileIO lists it; returns their locations."""
    jvm: Any = spark.sparkContext._jvm
    session: Any = spark._jsparkSession
    java = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, table)
    action = jvm.org.apache.iceberg.spark.actions.SparkActions.get(session).deleteOrphanFiles(java)
    later = jvm.java.lang.System.currentTimeMillis() + 60_000
    result = action.usePrefixListing(True).olderThan(later).execute()
    return list(result.orphanFileLocations())


def process_id(spark: SparkSession) -> int:
    """That of the driver's JVM."""
    jvm: Any = spark.sparkContext._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())


def executor_count(spark: SparkSession) -> int:
    """How many executors the driver has now."""
    jvm: Any = spark.sparkContext._jvm
    context = jvm.org.apache.spark.SparkContext.getOrCreate()
    return int(context.getExecutorMemoryStatus().size()) - 1  # the driver is among them


def web_ui(spark: SparkSession) -> str:
    """The address of the driver's UI."""
    return str(spark.sparkContext.uiWebUrl)


def deks_of(spark: SparkSession, table: str) -> set[bytes]:
    """The data keys of the manifests, data and delete files of a table's current snapshot."""
    jvm: Any = spark.sparkContext._jvm
    java = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    encrypted = jvm.org.apache.iceberg.encryption.EncryptedFiles.encryptedInput
    no_file = jvm.org.apache.iceberg.inmemory.InMemoryInputFile(b"")
    deks = set()

    def add(metadata: Any) -> None:
        found = java.encryption().decrypt(encrypted(no_file, metadata)).keyMetadata()
        deks.add(bytes(found.encryptionKey().array()))

    for manifest in java.currentSnapshot().allManifests(java.io()):
        add(manifest.keyMetadata())
    tasks = java.newScan().planFiles().iterator()
    while tasks.hasNext():
        task = tasks.next()
        for file in (task.file(), *task.deletes()):
            add(file.keyMetadata())
    tasks.close()
    return deks


def deks_in_shuffles(spark: SparkSession, table: str, statements: Sequence[str]) -> int:
    """Run statements, and count the places in Spark's shuffle files in which a DEK of the table stands."""
    deks = deks_of(spark, table)
    for statement in statements:
        spark.sql(statement).collect()
    jvm: Any = spark.sparkContext._jvm
    folders = jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager().localDirs()
    shuffled = [path.read_bytes() for f in folders for path in Path(f.getPath()).rglob("*.data")]
    assert deks and any(shuffled)
    return sum(dek in content for dek in deks for content in shuffled)


def save_as_table(spark: SparkSession, statement: str, table: str, mode: str) -> None:
    """A DataFrame saved as a table, without a format."""
    spark.sql(statement).write.mode(mode).saveAsTable(table)
