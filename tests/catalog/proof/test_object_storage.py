"""Strays, and a folder without a catalog, on an object store: S3FileIO on moto's S3, listed by prefix."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from harness.classes import SPARK_CATALOG
from harness.jars import build_jars
from harness.jvm import ENVIRONMENT
from harness.lake import FILES_ON_DRIVER
from harness.sessions import OtherSession
from harness.world import World, catalog_conf
from servers.aws import REGION, AwsServer, catalog_on_s3, start_moto

pytestmark = pytest.mark.nightly

BUCKET = "lake"


@dataclass
class S3Table:
    """A table in the bucket, whose objects are reached past Spark, too."""

    session: OtherSession
    moto: AwsServer
    name: str

    @property
    def uri(self) -> str:
        return f"s3://{BUCKET}/warehouse/db/{self.name}"

    def put(self, path: str, content: bytes) -> str:
        """Writes an object below the table's location, or beside it; its URI."""
        uri = f"{self.uri}{path}"
        self.moto.boto("s3").put_object(Bucket=BUCKET, Key=key(uri), Body=content)
        return uri

    def objects(self) -> list[str]:
        found = self.moto.boto("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"{key(self.uri)}/")
        return [f"s3://{BUCKET}/{one['Key']}" for one in found["Contents"]]

    def content(self, uri: str) -> bytes:
        answer = self.moto.boto("s3").get_object(Bucket=BUCKET, Key=key(uri))
        return bytes(answer["Body"].read())

    def verify(self, **options: Any) -> dict[str, Any]:
        return self.session.verify(f"lake.db.{self.name}", **options)


def key(uri: str) -> str:
    return uri.removeprefix(f"s3://{BUCKET}/")


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsServer]:
    server = start_moto(tmp_path_factory.mktemp("moto") / "log")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def session(
    world: World, moto: AwsServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OtherSession]:
    folder = tmp_path_factory.mktemp("s3")
    options = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{folder}/catalog.db",
        "jdbc.schema-version": "V1",
        "cache-enabled": "false",
        "encryption.kms-type": "keystore",
        **world.keystore_options(),
        **catalog_on_s3(moto, BUCKET),
    }
    conf = {
        **world.session_conf(metastore=folder / "metastore"),
        **catalog_conf("lake", SPARK_CATALOG, options),
        FILES_ON_DRIVER: "0",  # S3FileIO is sent to tasks
    }
    bundle = build_jars("kms-jars", "iceberg-aws-bundle-*.jar")[0]
    conf["spark.jars"] += f",{bundle}"
    # A folder has no catalog whose properties would say where S3 is.
    environment = {**ENVIRONMENT, "AWS_REGION": REGION, "AWS_ENDPOINT_URL_S3": moto.url}
    with OtherSession(conf, environment) as made:
        made.sql("CREATE NAMESPACE lake.db")
        yield made


@pytest.fixture
def table(session: OtherSession, moto: AwsServer) -> S3Table:
    made = S3Table(session, moto, f"t{uuid.uuid4().hex[:8]}")
    name = f"lake.db.{made.name}"
    session.sql(
        f"CREATE TABLE {name} (id BIGINT, part STRING) PARTITIONED BY (part) "
        "TBLPROPERTIES ('encryption.key-id'='k1', 'write.delete.mode'='merge-on-read')"
    )
    session.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, 'p' FROM range(5)")
    session.sql(f"DELETE FROM {name} WHERE id = 1")
    return made


def problems(report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["path"]: (one["kind"], one["code"]) for one in report["problems"]}


def test_a_clean_table(table: S3Table) -> None:
    """What begins alike is not below it."""
    table.put("-old/data/rows.parquet", b"PAR1 of a neighbour")
    table.put("2/rows.csv", b"1,2")
    for depth in ("magic", "structure", "deep"):
        report = table.verify(depth=depth, strays=True)
        assert report["ok"], report
        counted = {one["kind"]: one["files"] for one in report["counts"]}
        assert sum(counted.values()) == len(table.objects())
        assert "stray" not in counted
    folder = table.session.verify_folder(table.uri)
    assert folder["ok"], folder
    assert folder["file_count"] == len(table.objects())


def test_strays(table: S3Table) -> None:
    data = next(one for one in table.objects() if one.endswith(".parquet"))
    table.put("/data/orphan.parquet", table.content(data))
    table.put("/data/_SUCCESS", b"")
    planted = [
        table.put("/data/part=p/_temporary/.hidden/rows.parquet", b"PAR1 plaintext"),
        table.put("/metadata/stage-1.avro", b"Obj\x01 plaintext"),
        table.put("/a b%20c/rows.csv", b"1,2"),
    ]
    report = table.verify(strays=True)
    assert problems(report) == dict.fromkeys(planted, ("stray", "plaintext"))
    strays = {one["magic"]: one["files"] for one in report["counts"] if one["kind"] == "stray"}
    assert strays == {"PARE": 1, "EMPTY": 1, "PAR1": 1, "AVRO": 1, "OTHER": 1}
    assert table.verify()["ok"], "without strays they are not looked for"
    folder = table.session.verify_folder(f"{table.uri}/")
    assert problems(folder) == dict.fromkeys(planted, ("file", "plaintext"))


def test_damaged_objects(table: S3Table) -> None:
    data = next(one for one in table.objects() if one.endswith(".parquet"))
    whole = table.content(data)
    damages = {
        "plaintext": ("magic", b"PAR1" + whole[4:]),
        "truncated": ("structure", whole[:-8]),
        "tampered": ("deep", whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]),
    }
    for code, (depth, content) in damages.items():
        table.put(data.removeprefix(table.uri), content)
        assert problems(table.verify(depth=depth)) == {data: ("data", code)}
    table.moto.boto("s3").delete_object(Bucket=BUCKET, Key=key(data))
    assert problems(table.verify()) == {data: ("data", "missing")}
    table.put(data.removeprefix(table.uri), whole)
    assert table.verify(depth="deep")["ok"]


def test_a_folder_that_is_not_there(table: S3Table) -> None:
    with pytest.raises(RuntimeError, match="ConfigurationError: There is no file in"):
        table.session.verify_folder(f"{table.uri}/absent")
    report = table.session.verify_folder("s3://no-such-bucket/t")
    assert not report["ok"]
    assert [one["unchecked"] for one in report["problems"]] == [True]
