"""Encrypted tables in Flink: docs/engines.md statement by statement, a stream that restarts, and what is refused."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.classes import CATALOG, SPARK_CATALOG
from harness.files import files_below, magic
from harness.jars import ROOT, our_jar
from harness.keystore import TestKeystore, make_keystore
from harness.sessions import OtherSession
from harness.world import World, catalog_conf
from servers.flink import VERSIONS, Flink, FlinkError
from servers.process import Server
from servers.rest import start_rest_server

pytestmark = pytest.mark.nightly

SQL = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "engines.md").read_text(), re.DOTALL)
BATCH = "SET 'execution.runtime-mode' = 'batch'"
SYNC = "SET 'table.dml-sync' = 'true'"
TABLE = "CREATE TABLE lake.shop.t (id BIGINT) WITH ('encryption.key-id' = 'sales')"


@dataclass
class Place:
    """A keystore, a REST catalog and a Hadoop catalog."""

    folder: Path
    keystore: TestKeystore
    rest: Server

    def page(self) -> list[list[str]]:
        """The statements of each block of the page, on this place."""
        ours = {
            "http://localhost:8181": self.rest.uri,
            "/etc/flink/keys.p12": str(self.keystore.path),
            "/etc/flink/keys.password": str(self.keystore.password_file),
        }
        blocks = []
        for block in SQL:
            for written, here in ours.items():
                block = block.replace(written, here)
            blocks.append([statement for each in block.split(";") if (statement := each.strip())])
        return blocks

    def kms(self) -> dict[str, str]:
        return {
            "encryption.kms-type": "keystore",
            "encryption.kms.keystore.path": str(self.keystore.path),
            "encryption.kms.keystore.password-file": str(self.keystore.password_file),
        }

    def hadoop(self, **more: str) -> str:
        """A catalog whose metadata is signed."""
        properties = {
            "type": "iceberg",
            "catalog-impl": CATALOG,
            "encryption.catalog-type": "hadoop",
            "warehouse": str(self.folder / "hadoop"),
            **self.kms(),
            **more,
        }
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        return f"CREATE CATALOG lake WITH ({listed})"

    def spark(self, world: World) -> OtherSession:
        """Spark with both catalogs, `lake` and `signed`."""
        rest = {"type": "rest", "uri": self.rest.uri, "cache-enabled": "false", **self.kms()}
        signed = {"type": "hadoop", "warehouse": str(self.folder / "hadoop"), **self.kms()}
        return OtherSession(
            {
                **world.session_conf(metastore=self.folder / "metastore"),
                "spark.driver.memory": "1g",
                **catalog_conf("lake", SPARK_CATALOG, rest),
                **catalog_conf("signed", SPARK_CATALOG, signed),
            }
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    keystore = make_keystore(tmp_path, {"sales": 256})
    rest = start_rest_server(tmp_path / "rest.db", tmp_path / "rest", tmp_path / "rest.log")
    yield Place(tmp_path, keystore, rest)
    rest.stop()


@pytest.fixture(params=VERSIONS)
def flink(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Flink]:
    cluster = Flink(request.param, tmp_path / "flink")
    yield cluster
    cluster.stop()


newest = pytest.mark.parametrize("flink", VERSIONS[:1], indirect=True)


def all_encrypted(folder: Path) -> bool:
    return {magic(path) for path in files_below(folder)} == {b"PARE", b"AGS1"}


def test_the_page(place: Place, flink: Flink, world: World) -> None:
    """Its statements, in order; then Spark reads and changes the tables, and Flink reads them again."""
    catalog, stream, upsert, read = place.page()
    flink.start()

    rows = flink.query(SYNC, *catalog, *stream, *upsert, *read)

    assert sorted(rows) == [["apple", "7"], ["pear", "2"]]
    assert all_encrypted(place.folder / "rest")
    with place.spark(world) as spark:
        found = spark.sql("SELECT * FROM lake.shop.orders")
        assert sorted(row["customer"] for row in found) == ["Ada", "Bo"]
        assert spark.sql("SELECT count(*) n, sum(id) s FROM lake.shop.visits") == [
            {"n": 100, "s": 5050}
        ]
        assert {row["item"]: row["pieces"] for row in spark.sql("FROM lake.shop.stock")} == {
            "apple": 7,
            "pear": 2,
        }
        for table in ("orders", "visits", "stock"):
            report = spark.verify(f"lake.shop.{table}", deep=True, strays=True)
            assert report["ok"], report
        spark.sql(
            "ALTER TABLE lake.shop.orders SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
        )
        spark.sql("INSERT INTO lake.shop.orders VALUES (3, 'Cy'), (4, 'Di')")
        spark.sql("DELETE FROM lake.shop.orders WHERE id = 1")
        (vectors,) = spark.sql("SELECT count(*) n FROM lake.shop.orders.delete_files")
        assert vectors["n"] == 1
        spark.sql("CALL lake.system.rotate_kek(table => 'shop.visits')")
    names = flink.query(catalog[0], BATCH, "SELECT customer FROM lake.shop.orders")
    assert sorted(names) == [["Bo"], ["Cy"], ["Di"]]
    count = flink.query(catalog[0], BATCH, "SELECT count(*) FROM lake.shop.visits")
    assert count == [["100"]]


@newest
def test_a_stream_restarts_from_a_checkpoint(place: Place, flink: Flink, world: World) -> None:
    """All processes are killed in the middle: no row is lost, and none is there twice."""
    set_up = [
        "SET 'execution.checkpointing.interval' = '500 ms'",
        place.hadoop(),
        "CREATE TEMPORARY TABLE clicks (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '20',"
        " 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '600')",
    ]
    insert = "INSERT INTO lake.shop.visits SELECT id FROM clicks"
    table = "CREATE TABLE lake.shop.visits (id BIGINT) WITH ('encryption.key-id' = 'sales')"
    flink.start()
    job = flink.submit(*set_up, "CREATE DATABASE lake.shop", table, insert)
    flink.wait_for_checkpoints(job, 4)
    flink.kill()

    kept = (flink.folder / "checkpoints" / job).glob("chk-*/_metadata")
    last = max(kept, key=lambda path: int(path.parent.name.partition("-")[2])).parent
    flink.start()
    recovery = f"SET 'execution.state-recovery.path' = 'file://{last}'"
    flink.wait_for_job(flink.submit(*set_up, recovery, insert))

    magics = {magic(path) for path in files_below(place.folder / "hadoop")}
    assert magics - {b""} == {b"PARE", b"AGS1"}  # a killed process may only have opened a file
    with place.spark(world) as spark:
        (counted,) = spark.sql("SELECT count(*) n, count(DISTINCT id) d FROM signed.shop.visits")
        assert counted == {"n": 600, "d": 600}
        snapshots = spark.sql("SELECT count(*) n FROM signed.shop.visits.snapshots")
        assert snapshots[0]["n"] > 4
        assert spark.verify("signed.shop.visits", deep=True)["ok"]


@newest
def test_the_same_key_twice_in_a_checkpoint_is_refused(place: Place, flink: Flink) -> None:
    flink.start()
    upsert = (
        "CREATE TABLE lake.shop.stock (item STRING, n INT, PRIMARY KEY (item) NOT ENFORCED) WITH"
        " ('encryption.key-id' = 'sales', 'write.upsert.enabled' = 'true')"
    )
    twice = "INSERT INTO lake.shop.stock VALUES ('plum', 1), ('plum', 2)"
    with pytest.raises(
        FlinkError, match=r"lake\.shop\.stock: .* loses the keys of deletion vectors"
    ):
        flink.sql(SYNC, place.hadoop(), "CREATE DATABASE lake.shop", upsert, twice)
    assert flink.query(place.hadoop(), BATCH, "SELECT * FROM lake.shop.stock") == []
    # the writer refused it: no checkpoint has it, which a restart would commit again
    staged = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}-.*\.avro")
    assert not [path for path in files_below(place.folder / "hadoop") if staged.match(path.name)]


@newest
def test_a_streaming_read_runs_and_writes_leave_no_keys_in_checkpoints(
    place: Place, flink: Flink
) -> None:
    """What a streaming read leaves in its checkpoints is said by the page, from Iceberg's source; not tested here."""
    flink.start()
    flink.sql(
        SYNC,
        place.hadoop(),
        "CREATE DATABASE lake.shop",
        TABLE,
        "INSERT INTO lake.shop.t VALUES (1)",
    )
    written = list((flink.folder / "checkpoints").rglob("*"))
    assert not any(b"key-metadata" in path.read_bytes() for path in written if path.is_file())
    job = flink.submit(
        "SET 'execution.checkpointing.interval' = '300 ms'",
        place.hadoop(),
        "CREATE TEMPORARY TABLE nowhere (id BIGINT) WITH ('connector' = 'blackhole')",
        "INSERT INTO nowhere SELECT id FROM lake.shop.t /*+ OPTIONS('streaming'='true', 'monitor-interval'='1s') */",
    )
    flink.wait_for_checkpoints(job, 3)


@newest
def test_without_our_jar(place: Place, flink: Flink) -> None:
    flink.ours = False
    with pytest.raises(FlinkError, match=re.escape(CATALOG)):
        flink.sql(place.hadoop(), "SHOW DATABASES IN lake")


@newest
def test_the_jar_for_spark_is_refused(place: Place, flink: Flink) -> None:
    """It was compiled for another Iceberg."""
    flink.ours = False
    flink.more = [our_jar()]
    with pytest.raises(FlinkError, match=r"for Iceberg 1\.12.*this is Iceberg 1\.11"):
        flink.sql(place.hadoop(), "SHOW DATABASES IN lake")


@newest
def test_without_the_library_of_the_kms(place: Place, flink: Flink) -> None:
    aws = place.hadoop(**{"encryption.kms-type": "aws", "encryption.kms.aws.region": "us-east-1"})
    aws = re.sub(r", 'encryption.kms.keystore[^']*' = '[^']*'", "", aws)
    with pytest.raises(FlinkError, match="iceberg-aws-bundle"):
        flink.sql(aws, "CREATE DATABASE lake.shop", TABLE)


@newest
def test_metadata_tables_with_data_keys(place: Place, flink: Flink) -> None:
    """They are refused; exposed, Flink's default source cannot read them: as the page says."""
    flink.start()
    flink.sql(
        SYNC,
        place.hadoop(),
        "CREATE DATABASE lake.shop",
        TABLE,
        "INSERT INTO lake.shop.t VALUES (1), (2)",
    )
    files = "SELECT record_count FROM lake.shop.`t$files`"
    with pytest.raises(FlinkError, match="would show data keys"):
        flink.query(place.hadoop(), BATCH, files)
    snapshots = "SELECT operation FROM lake.shop.`t$snapshots`"
    assert flink.query(place.hadoop(), BATCH, snapshots) == [["append"]]

    exposing = place.hadoop(**{"encryption.expose-key-metadata": "true"})
    with pytest.raises(
        FlinkError, match="Cannot find constructor for interface org.apache.iceberg.io.FileIO"
    ):
        flink.query(exposing, BATCH, files)
    former = "SET 'table.exec.iceberg.use-flip27-source' = 'false'"
    assert flink.query(exposing, BATCH, former, files) == [["2"]]
