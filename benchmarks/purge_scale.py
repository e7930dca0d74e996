"""What purges and expiry ask of the storage, and keep on the driver, as the files that they delete grow in number.

    python benchmarks/purge_scale.py [--only TEXT] [FILES ...]

FILES are numbers of data files (10,000 and 100,000); --only measures operations that have a text in their names. The
storage is simulated: it is in the memory of the JVM, answers at once, and counts the requests that Iceberg's S3FileIO
would make, which deletes 250 files by each (`s3.delete.batch-size`). All data files have the bytes of one. Prints
seconds on two cores, requests, and by how many bytes the heap grows with each file until the first file is deleted,
without what Spark's executors, which are in the same JVM, have cached.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from suite.session import session

from pyspark_iceberg_crypto import encrypt_table, purge_plaintext

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from harness.classes import SPARK_CATALOG
from harness.world import World, catalog_conf

STORE = "io.icebergcrypto.benchmarks.CountedStore"
TABLE = "counted.db.t"
KINDS = ("DELETE MANY", "DELETE", "GET", "HEAD", "LIST")
WARM_UP = 500


class Purges:
    """The session, and a table of many files in the counted store."""

    def __init__(self, spark: Any, world: World) -> None:
        self.spark, self.java = spark, spark._jvm
        self.store: Any = self.java.io.icebergcrypto.benchmarks.CountedStore
        self.storage = {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{world.root}/counted.db?busy_timeout=30000",
            "jdbc.schema-version": "V1",
            "warehouse": "s3://counted/warehouse",
            "io-impl": STORE,
            "cache-enabled": "false",
        }
        keystore = {"encryption.kms-type": "keystore", **world.keystore_options()}
        for key, value in catalog_conf("counted", SPARK_CATALOG, self.storage | keystore).items():
            spark.conf.set(key, value)
        spark.sql("CREATE NAMESPACE counted.db")

    def table(self, files: int, *, key: bool = True, deleted: bool = False) -> None:
        """A table of so many files; deleted: only its older snapshots have them."""
        properties = "'encryption.key-id'='k1'" if key else "'format-version'='2'"
        self.spark.sql(f"CREATE TABLE {TABLE} (id BIGINT) TBLPROPERTIES ({properties})")
        self.spark.sql(f"INSERT INTO {TABLE} VALUES (1)")
        table = self.load()
        first = self.java.io.icebergcrypto.benchmarks.Tables.first(table)
        self.store.copy(table, first, files, 5_000)
        if deleted:
            self.spark.sql(f"DELETE FROM {TABLE}")
            self.spark.sql(f"INSERT INTO {TABLE} VALUES (2)")

    def load(self) -> Any:
        return self.catalog().loadTable(self.identifier())

    def catalog(self) -> Any:
        manager = self.spark._jsparkSession.sessionState().catalogManager()
        return manager.catalog("counted").encryptedCatalog()

    def identifier(self) -> Any:
        return self.java.org.apache.iceberg.catalog.TableIdentifier.parse("db.t")

    def plaintext(self, files: int) -> None:
        self.table(files, key=False, deleted=True)
        encrypt_table(self.spark, TABLE, "k1", progress=False)

    def purge(self) -> None:
        purge_plaintext(self.spark, TABLE, progress=False)

    def purge_without_key(self) -> None:
        properties = self.java.java.util.HashMap()
        for key, value in self.storage.items():
            properties.put(key.replace("type", "encryption.catalog-type"), value)
        catalog = self.java.io.icebergcrypto.catalog.EncryptedCatalog()
        catalog.setConf(self.spark._jsc.hadoopConfiguration())
        catalog.initialize("counted", properties)
        catalog.context().purgeWithoutKey(self.identifier(), True)
        catalog.close()

    def expire(self, *more: str) -> None:
        arguments = ", ".join(("table => 'db.t'", "older_than => TIMESTAMP '2999-01-01'", *more))
        self.spark.sql(f"CALL counted.system.expire_snapshots({arguments})").collect()

    def expire_in_java(self) -> None:
        self.load().expireSnapshots().expireOlderThan(1 << 62).retainLast(1).commit()

    def operations(self) -> dict[str, tuple[Callable[[int], None], Callable[[], object]]]:
        """What makes the table, and what is measured."""
        old = lambda files: self.table(files, deleted=True)  # noqa: E731
        return {
            "`purge_plaintext`": (self.plaintext, self.purge),
            "DROP TABLE PURGE": (
                self.table,
                lambda: self.spark.sql(f"DROP TABLE {TABLE} PURGE"),
            ),
            "DROP TABLE PURGE, in Java": (
                self.table,
                lambda: self.catalog().dropTable(self.identifier(), True),
            ),
            "`purge_without_key`": (self.table, self.purge_without_key),
            "`expire_snapshots`": (old, self.expire),
            "`expire_snapshots`, `stream_results => true`": (
                old,
                lambda: self.expire("stream_results => true"),
            ),
            "`expireSnapshots`, in Java": (old, self.expire_in_java),
        }

    def measure(self, name: str, files: int) -> tuple[str, int]:
        """A row of the table, and by how many bytes the heap has grown."""
        make, run = self.operations()[name]
        make(files)
        before = self.store.heap()
        self.store.begin()
        start = time.perf_counter()
        run()
        seconds = time.perf_counter() - start - self.store.secondsOfHeap()
        counts = self.store.counts()
        grown = self.store.heapAtFirstDelete() - before
        left = self.store.files("s3://counted/warehouse/db/t/data/")
        assert left <= 1, f"{name} has left {left} files"
        self.spark.sql(f"DROP TABLE IF EXISTS {TABLE} PURGE")
        requests = " | ".join(f"{counts.get(kind) or 0:,}" for kind in KINDS)
        return f"| {name} | {files:,} | {seconds:.1f} | {requests} |", grown


def main(sizes: Sequence[int], only: str) -> None:
    with session(2, "4g") as (spark, world):
        purges = Purges(spark, world)
        print(f"| | files | s | {' | '.join(KINDS)} | bytes a file |")
        print(f"|---{'|--:' * (len(KINDS) + 3)}|")
        for name in filter(lambda name: only in name, purges.operations()):
            purges.measure(name, WARM_UP)
            least = 0
            for size in sizes:
                row, grown = purges.measure(name, size)
                more = f" {(grown - least) / (size - sizes[0]):,.0f}" if size > sizes[0] else ""
                least = least or grown
                print(f"{row}{more} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What purges and expiry ask of the storage.")
    parser.add_argument("files", metavar="FILES", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--only", metavar="TEXT", default="", help="in the names of operations")
    given = parser.parse_args()
    main(given.files, given.only)
