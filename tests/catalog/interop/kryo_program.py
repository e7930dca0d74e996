"""What test_kryo.py runs on a local-cluster with Kryo: all that this project has run on executors."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.files import ENCRYPTED_MAGIC, changed, flipped, magic
from harness.steps import given, seen, tell
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import verify_table

T = "lake.db.t"


def main() -> None:
    settings, builder = given()
    work = Work(builder.getOrCreate(), Path(settings["folder"]), settings["mode"])
    found = seen(work.steps())
    work.spark.stop()
    tell(found)


class Work:
    """The steps, each of which is told apart."""

    def __init__(self, spark: SparkSession, folder: Path, mode: str) -> None:
        self.spark = spark
        self.folder = folder
        self.modes = "".join(
            f", 'write.{what}.mode'='{mode}'" for what in ("delete", "update", "merge")
        )

    def steps(self) -> list[Callable[[], Any]]:
        return [
            *(self.write, self.change, self.avro, self.metadata_tables, self.statistics),
            *(self.compact, self.manifests, self.stream, self.verified, self.copied, self.planted),
            *(self.tampered, self.forged_list, self.no_kms, self.expire, self.orphans),
            *(self.decrypted, self.purge),
        ]

    def sql(self, statement: str) -> list[Any]:
        return self.spark.sql(statement).collect()

    def create(self, table: str, more: str = "") -> None:
        self.sql(
            f"CREATE TABLE {table} (id BIGINT, part BIGINT) USING iceberg PARTITIONED BY (part) "
            f"TBLPROPERTIES ('encryption.key-id'='k1'{self.modes}{more})"
        )

    def insert(self, table: str, start: int, count: int = 20) -> None:
        rows = f"SELECT id, id % 2 FROM range({start}, {start + count}, 1, 4)"
        self.sql(f"INSERT INTO {table} {rows}")

    def ids(self, table: str = T) -> list[int]:
        return sorted(row.id for row in self.sql(f"SELECT id FROM {table}"))

    def write(self) -> Any:
        self.sql("CREATE NAMESPACE lake.db")
        self.create(T)
        self.insert(T, 0)
        self.insert(T, 20)
        return self.ids()

    def change(self) -> Any:
        self.sql(f"DELETE FROM {T} WHERE id IN (3, 23)")
        self.sql(f"UPDATE {T} SET id = 100 WHERE id = 4")
        self.sql(
            f"MERGE INTO {T} t USING (SELECT 5 AS id UNION ALL SELECT 200) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 0)"
        )
        return self.ids()

    def avro(self) -> Any:
        self.create("lake.db.a", ", 'write.format.default'='avro'")
        self.insert("lake.db.a", 0)
        return self.ids("lake.db.a")

    def metadata_tables(self) -> Any:
        names = ["files", "entries", "all_files", "all_entries", "manifests", "all_manifests"]
        names += ["data_files", "delete_files", "position_deletes", "partitions", "snapshots"]
        counts = {name: len(self.sql(f"SELECT * FROM {T}.{name}")) for name in names}
        keys = self.sql(f"SELECT DISTINCT key_metadata FROM {T}.files")
        return {"counts": counts, "keys": [row.key_metadata for row in keys]}

    def statistics(self) -> Any:
        for procedure in ("compute_table_stats", "compute_partition_stats"):
            self.sql(f"CALL lake.system.{procedure}(table => 'db.t')")
        return self.ids()

    def compact(self) -> Any:
        for procedure, options in (
            ("rewrite_data_files", ", options => map('rewrite-all', 'true')"),
            ("rewrite_data_files", ", strategy => 'sort', sort_order => 'id'"),
            ("rewrite_position_delete_files", ""),
        ):
            self.sql(f"CALL lake.system.{procedure}(table => 'db.t'{options})")
        return self.ids()

    def manifests(self) -> Any:
        try:
            self.sql("CALL lake.system.rewrite_manifests(table => 'db.t')")
        except Exception as error:  # noqa: BLE001 (its text is what is looked at)
            return {"refused": str(error), "ids": self.ids()}
        return self.ids()

    def stream(self) -> Any:
        self.create("lake.db.s")
        query = (
            self.spark.readStream.table("lake.db.a")
            .writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .toTable("lake.db.s")
        )
        assert query.awaitTermination(120), "the stream did not end"
        return self.ids("lake.db.s")

    def verified(self) -> Any:
        found = {}
        for all_snapshots in (False, True):
            with verify_table(self.spark, T, all_snapshots=all_snapshots) as report:
                files = report.files.count()
                found[str(all_snapshots)] = {
                    "ok": report.ok,
                    "problems": [problem.problem for problem in report.problems],
                    "kinds": sorted({count.kind for count in report.counts}),
                    "all_told": files == report.file_count,
                }
        return found

    def copied(self) -> Any:
        """All snapshots and statistics, at another location, prepared by Spark's tasks."""
        source, target = self.folder / "warehouse" / "db" / "t", self.folder / "copy"
        self.spark.conf.set("spark.iceberg-crypto.verify.files-on-driver", "0")
        row = self.sql(
            f"CALL lake.system.rewrite_table_path(table => 'db.t', source_prefix => '{source}', "
            f"target_prefix => '{target}', staging_location => '{self.folder}/staging')"
        )[0]
        self.spark.conf.unset("spark.iceberg-crypto.verify.files-on-driver")
        *_, last = lines = Path(row.file_list_location).read_text().splitlines()
        for source_file, target_file in (line.split(",") for line in lines):
            Path(target_file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source_file, target_file)
        metadata = last.split(",")[1]
        self.sql(f"CALL lake.system.register_table(table => 'db.c', metadata_file => '{metadata}')")
        with (
            replaced_folder(source, self.folder / "away"),
            verify_table(self.spark, "lake.db.c", deep=True, all_snapshots=True) as report,
        ):
            return {
                "ok": report.ok,
                "report": str(report),
                "kinds": sorted({count.kind for count in report.counts}),
                "ids": self.ids("lake.db.c"),
            }

    def planted(self) -> Any:
        """Two plaintext files in the place of encrypted ones: named, and no other."""
        victims = self.data_files("a")[:2]
        with changed({victims[0]: b"Obj\x01 plaintext", victims[1]: b"PAR1 plaintext"}):
            found = self.problems("lake.db.a")
        return {"found": found, "planted": sorted(str(victim) for victim in victims)}

    def tampered(self) -> Any:
        """A data file changed under Parquet: the error names the table and the file."""
        victim = self.data_files("t", ".parquet")[-1]
        with changed({victim: flipped(victim.read_bytes(), 60)}):
            try:
                self.ids()
            except Exception as error:  # noqa: BLE001 (its text is what is looked at)
                return {"text": str(error), "victim": victim.name}
        return "nothing was noticed"

    def forged_list(self) -> Any:
        """A manifest changed: a finding about the table, by an exception that travelled from an executor."""
        table = self.folder / "warehouse" / "db" / "a" / "metadata"
        (victim,) = (path for path in table.glob("*-m0.avro"))
        with changed({victim: flipped(victim.read_bytes(), 60)}):
            return {"found": self.problems("lake.db.a"), "victim": victim.name}

    def no_kms(self) -> Any:
        """Executors of a new session cannot open the keystore: nothing is known of the table, which is no finding."""
        keystore = Path(
            str(self.spark.conf.get("spark.sql.catalog.lake.encryption.kms.keystore.path"))
        )
        away = keystore.with_name("away")
        self.spark.sparkContext.setLogLevel("OFF")
        session = self.spark.newSession()
        session.sql(f"SELECT * FROM {T}").collect()  # its driver has the KEK
        keystore.rename(away)
        try:
            with verify_table(session, T, all_snapshots=True) as report:
                problems = [vars(problem) for problem in report.problems]
            return {"ok": report.ok, "problems": problems, "purge": self.refused_purge(session)}
        finally:
            away.rename(keystore)

    def refused_purge(self, session: SparkSession) -> str:
        try:
            session.sql(f"DROP TABLE {T} PURGE")
        except Exception as error:  # noqa: BLE001 (told by the step's test)
            return str(error)
        return ""

    def expire(self) -> Any:
        row = self.sql(
            "CALL lake.system.expire_snapshots(table => 'db.t', retain_last => 1, "
            "older_than => TIMESTAMP '2999-01-01 00:00:00')"
        )[0]
        return {"lists": row.deleted_manifest_lists_count, "ids": self.ids()}

    def orphans(self) -> Any:
        orphan = self.folder / "warehouse" / "db" / "t" / "data" / "orphan.parquet"
        orphan.write_bytes(b"PAR1")
        os.utime(orphan, (0, 0))  # younger ones may be of a commit that is under way
        rows = self.sql("CALL lake.system.remove_orphan_files(table => 'db.t')")
        return {"found": [Path(row[0]).name for row in rows], "ids": self.ids()}

    def decrypted(self) -> Any:
        """A copy fails after most of its tasks have ended, on both executors."""
        self.sql(
            "CREATE TABLE lake.db.d TBLPROPERTIES ('encryption.key-id'='k1') "
            "AS SELECT id, id % 2 AS part FROM range(0, 20, 1, 8)"
        )
        files, told = self.data_files("d", ".parquet"), ""
        victim = max(files, key=lambda path: path.name)
        with changed({victim: flipped(victim.read_bytes(), 40)}):
            try:
                self.sql("CALL lake.system.decrypt_table(table => 'db.d', confirm => true)")
            except Exception as error:  # noqa: BLE001 (its text is what is looked at)
                told = str(error)
        every = victim.parent.glob("*.parquet")
        left = [path.name for path in every if magic(path) not in ENCRYPTED_MAGIC]
        return {"files": len(files), "told": told, "left": left, "ids": self.ids("lake.db.d")}

    def purge(self) -> Any:
        self.sql(f"DROP TABLE {T} PURGE")
        table = self.folder / "warehouse" / "db" / "t"
        return [path.name for path in table.rglob("*") if path.is_file()]

    def data_files(self, table: str, suffix: str = ".avro") -> list[Path]:
        files = self.sql(f"SELECT file_path FROM lake.db.{table}.data_files")
        return sorted(
            Path(row.file_path.removeprefix("file:"))
            for row in files
            if row.file_path.endswith(suffix)
        )

    def problems(self, table: str) -> list[str]:
        with verify_table(self.spark, table) as report:
            return sorted(f"{p.kind} {p.path} {p.problem}" for p in report.problems)


@contextmanager
def replaced_folder(folder: Path, by: Path) -> Iterator[None]:
    """The folder is elsewhere for a while."""
    folder.rename(by)
    try:
        yield
    finally:
        by.rename(folder)


if __name__ == "__main__":
    main()
