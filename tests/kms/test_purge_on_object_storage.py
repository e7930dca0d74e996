"""purge_without_key on object stores, where a folder is what names begin with.

By day, LostKeyPurgeTest has a double of one.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from harness.classes import CATALOG
from harness.jvm import Jvm
from harness.keystore import TestKeystore, make_keystore
from servers.stores import KINDS, ObjectStore, start_store

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.jvm._jvm import typed_errors

pytestmark = pytest.mark.nightly

SCHEMA = (
    '{"type": "struct", "schema-id": 0, "fields": '
    '[{"id": 1, "name": "id", "required": true, "type": "long"}]}'
)


@dataclass
class StoredLake:
    """A JDBC catalog whose tables are in a folder of their own."""

    jvm: Jvm
    store: ObjectStore
    root: str
    options: dict[str, str]
    kms: dict[str, str]

    def catalog(self, more: Mapping[str, str]) -> Any:
        given = self.jvm.view.java.util.HashMap()
        for name, value in {**self.options, **more}.items():
            given.put(name, value)
        iceberg = self.jvm.view.org.apache.iceberg
        conf = self.jvm.view.org.apache.hadoop.conf.Configuration()
        return iceberg.CatalogUtil.buildIcebergCatalog("lake", given, conf)

    def with_key(self) -> Any:
        return self.catalog(self.kms)

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
        builder.withLocation(location).withProperty("encryption.key-id", "k1")
        for name, value in properties.items():
            builder.withProperty(name.replace("_", "."), value)
        made = str(builder.create().location())
        catalog.close()
        self.put(f"{made}/data/f.parquet")
        return made

    def put(self, location: str) -> None:
        self.store.put(location, b"PARE")

    def objects(self) -> set[str]:
        return set(self.store.below(self.root))

    def purge(self, table: str, **more: str) -> Any:
        """Without any KMS: the key is lost for good."""
        catalog = self.catalog({name.replace("_", "."): value for name, value in more.items()})
        try:
            with typed_errors():
                return catalog.context().purgeWithoutKey(self.name(table), True)
        finally:
            catalog.close()

    def exists(self, table: str) -> bool:
        return bool(self.with_key().tableExists(self.name(table)))


@pytest.fixture(
    scope="module",
    params=KINDS,
)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectStore]:
    started = start_store(request.param, tmp_path_factory.mktemp(request.param))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def keystore(tmp_path_factory: pytest.TempPathFactory) -> TestKeystore:
    return make_keystore(tmp_path_factory.mktemp("keystore"), {"k1": 256})


@pytest.fixture
def lake(jvm: Jvm, store: ObjectStore, keystore: TestKeystore, tmp_path: Path) -> StoredLake:
    root = f"{store.root}/lake-{uuid.uuid4().hex[:8]}"
    options = {
        **store.options,
        "catalog-impl": CATALOG,
        "encryption.catalog-type": "jdbc",
        "uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "jdbc.schema-version": "V1",
        "warehouse": root,
    }
    kms = {
        "encryption.kms-type": "keystore",
        "encryption.kms.keystore.path": str(keystore.path),
        "encryption.kms.keystore.password-file": str(keystore.password_file),
    }
    return StoredLake(jvm, store, root, options, kms)


def test_what_begins_alike_stays(lake: StoredLake) -> None:
    """.../t2 begins with .../t; both are tables' own, one was made with a slash at its end."""
    for location, own in ((None, "t"), (f"{lake.root}/own/u/", "u")):
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


def test_a_whole_bucket_is_no_tables_folder(lake: StoredLake) -> None:
    lake.create("t", lake.store.root)
    before = lake.store.below(lake.store.root)
    with pytest.raises(errors.ConfigurationError, match=r"db\.t.*nothing was dropped.*own folder"):
        lake.purge("t")
    assert lake.store.below(lake.store.root) == before
    assert lake.exists("t")


def test_another_table_below_is_refused(lake: StoredLake) -> None:
    table = lake.create("t")
    lake.create("inner", f"{table}/inner")
    before = lake.objects()
    with pytest.raises(errors.ConfigurationError, match="metadata that is not of this table"):
        lake.purge("t")
    assert lake.objects() == before
    assert lake.exists("t")


def test_folders_elsewhere_are_left(lake: StoredLake) -> None:
    shared = f"{lake.root}/shared"
    table = lake.create("t", write_data_path=f"{shared}/")
    lake.put(f"{shared}/f.parquet")
    purged = lake.purge("t")
    assert list(purged.left()) == [shared]
    assert lake.objects() == {f"{shared}/f.parquet"}
    assert not any(path.startswith(table) for path in lake.objects())


@pytest.mark.parametrize("store", ["s3"], indirect=True)
def test_a_purge_that_deletes_nothing_says_so(lake: StoredLake) -> None:
    """s3.delete-enabled=false: S3FileIO then deletes nothing and says nothing."""
    lake.create("t")
    before = lake.objects()
    careful = replace(lake, options={**lake.options, "s3.delete-enabled": "false"})
    with pytest.raises(errors.IcebergCryptoError, match="it was dropped, but files remain"):
        careful.purge("t")
    assert lake.objects() == before
