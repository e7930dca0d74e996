"""purge_without_key on an object store: S3FileIO on moto's S3, where a folder is what names begin with."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness.classes import CATALOG
from harness.jvm import Jvm
from servers.aws import REGION, AwsServer, catalog_on_s3

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto._jvm import typed_errors

SCHEMA = (
    '{"type": "struct", "schema-id": 0, "fields": '
    '[{"id": 1, "name": "id", "required": true, "type": "long"}]}'
)


@dataclass
class S3Lake:
    """A JDBC catalog whose tables are in a bucket of their own."""

    jvm: Jvm
    moto: AwsServer
    bucket: str
    options: dict[str, str]
    key: str

    def catalog(self, more: Mapping[str, str]) -> Any:
        given = self.jvm.view.java.util.HashMap()
        for name, value in {**self.options, **more}.items():
            given.put(name, value)
        iceberg = self.jvm.view.org.apache.iceberg
        conf = self.jvm.view.org.apache.hadoop.conf.Configuration()
        return iceberg.CatalogUtil.buildIcebergCatalog("lake", given, conf)

    def with_key(self) -> Any:
        return self.catalog(
            {
                "encryption.kms-type": "aws",
                "encryption.kms.aws.region": REGION,
                "encryption.kms.aws.endpoint": self.moto.url,
            }
        )

    def name(self, table: str) -> Any:
        return self.jvm.view.org.apache.iceberg.catalog.TableIdentifier.parse(f"db.{table}")

    def create(self, table: str, location: str | None = None, **properties: str) -> str:
        """Makes an encrypted table and puts a file into its data folder. Returns its location."""
        catalog = self.with_key()
        if not catalog.namespaceExists(self.name(table).namespace()):
            catalog.createNamespace(self.name(table).namespace())
        builder = catalog.buildTable(
            self.name(table), self.jvm.view.org.apache.iceberg.SchemaParser.fromJson(SCHEMA)
        )
        builder.withLocation(location).withProperty("encryption.key-id", self.key)
        for name, value in properties.items():
            builder.withProperty(name.replace("_", "."), value)
        made = str(builder.create().location())
        catalog.close()
        self.put(f"{made}/data/f.parquet")
        return made

    def put(self, location: str) -> None:
        bucket, _, key = location.removeprefix("s3://").partition("/")
        self.moto.boto("s3").put_object(Bucket=bucket, Key=key, Body=b"PARE")

    def objects(self) -> set[str]:
        listed = self.moto.boto("s3").list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return {f"s3://{self.bucket}/{found['Key']}" for found in listed}

    def purge(self, table: str, **more: str) -> Any:
        """Without any KMS: the key is lost for good."""
        catalog = self.catalog({name.replace("_", "."): value for name, value in more.items()})
        try:
            with typed_errors():
                return catalog.purgeWithoutKey(self.name(table))
        finally:
            catalog.close()

    def exists(self, table: str) -> bool:
        return bool(self.with_key().tableExists(self.name(table)))


@pytest.fixture
def lake(jvm: Jvm, moto: AwsServer, tmp_path: Path) -> S3Lake:
    bucket = f"lake-{uuid.uuid4().hex[:8]}"
    options = {
        "catalog-impl": CATALOG,
        "encryption.catalog-type": "jdbc",
        "uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "jdbc.schema-version": "V1",
        **catalog_on_s3(moto, bucket),
    }
    return S3Lake(jvm, moto, bucket, options, moto.create_key())


def test_what_begins_alike_stays(lake: S3Lake) -> None:
    """s3://bucket/.../t2 begins with s3://bucket/.../t; both are tables' own, one was made with a slash at its end."""
    for location, own in ((None, "t"), (f"s3://{lake.bucket}/own/u/", "u")):
        table = lake.create(own, location)
        assert not table.endswith("/")
        beside = location.replace("/u/", "/u2") if location else None
        neighbour = lake.create(f"{own}2", beside)
        assert neighbour == f"{table}2"
        for other in (table, f"{table}-old/f", f"{table}.bak"):
            lake.put(other)
        before = lake.objects()
        mine = {path for path in before if path.startswith(f"{table}/")}
        assert len(mine) == 2  # metadata.json and a data file
        purged = lake.purge(own)
        assert purged.files() == len(mine)
        assert purged.bytes() > 0
        assert lake.objects() == before - mine
        assert not lake.exists(own)
        assert lake.with_key().loadTable(lake.name(f"{own}2")).location() == neighbour


def test_a_whole_bucket_is_no_tables_folder(lake: S3Lake) -> None:
    lake.create("t", f"s3://{lake.bucket}")
    before = lake.objects()
    with pytest.raises(errors.ConfigurationError, match=r"db\.t.*nothing was dropped.*own folder"):
        lake.purge("t")
    assert lake.objects() == before
    assert lake.exists("t")


def test_another_table_below_is_refused(lake: S3Lake) -> None:
    table = lake.create("t")
    lake.create("inner", f"{table}/inner")
    before = lake.objects()
    with pytest.raises(errors.ConfigurationError, match="metadata that is not of this table"):
        lake.purge("t")
    assert lake.objects() == before
    assert lake.exists("t")


def test_folders_elsewhere_are_left(lake: S3Lake) -> None:
    shared = f"s3://{lake.bucket}/shared"
    table = lake.create("t", write_data_path=f"{shared}/")
    lake.put(f"{shared}/f.parquet")
    purged = lake.purge("t")
    assert list(purged.left()) == [shared]
    assert lake.objects() == {f"{shared}/f.parquet"}
    assert not any(path.startswith(table) for path in lake.objects())


def test_a_purge_that_deletes_nothing_says_so(lake: S3Lake) -> None:
    """s3.delete-enabled=false: S3FileIO then deletes nothing and says nothing."""
    lake.create("t")
    before = lake.objects()
    options = {**lake.options, "s3.delete-enabled": "false"}
    careful = S3Lake(lake.jvm, lake.moto, lake.bucket, options, lake.key)
    with pytest.raises(errors.IcebergCryptoError, match="it was dropped, but files remain"):
        careful.purge("t")
    assert lake.objects() == before
