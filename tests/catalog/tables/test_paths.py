"""Tables by their paths, where the catalog default_iceberg is ours: encrypted as tables with names are."""

import os
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from harness.files import change, everything_below, files_below, magic, plaintext_problem, untouched
from harness.jars import BUILT
from harness.lake import Lake
from harness.world import OURS, World, catalog_conf
from pyspark.sql import DataFrame, SparkSession

from pyspark_iceberg_crypto import repair_table, rotate_kek, rotate_master_key, verify_table

DEFAULT = "default_iceberg"
TABLE_INFO = BUILT.spark >= "4.1"  # which has that form of createTable and its kin


@pytest.fixture(scope="module")
def session(spark: SparkSession, world: World) -> SparkSession:
    """A session where Iceberg takes paths to a catalog of ours; others keep Iceberg's own."""
    made = spark.newSession()
    for key, value in catalog_conf(DEFAULT, OURS, world.ours("hive")).items():
        made.conf.set(key, value)
    return made


@pytest.fixture(scope="module")
def strict(spark: SparkSession, world: World) -> SparkSession:
    """With encryption.plaintext-tables=refuse, which implies encryption.required=true; and no metastore to ask."""
    made = spark.newSession()
    options = {**world.ours("hive"), "encryption.plaintext-tables": "refuse"}
    options["uri"] = "thrift://127.0.0.1:1"
    for key, value in catalog_conf(DEFAULT, OURS, options).items():
        made.conf.set(key, value)
    return made


class Place:
    """A folder for one table, which Java makes by its path, as Spark has no way to."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session = session
        self.folder = folder
        jvm: Any = session._jvm
        self.jvm = jvm
        jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
        self.catalog = session._jsparkSession.sessionState().catalogManager().catalog(DEFAULT)
        self.ident = jvm.org.apache.iceberg.spark.PathIdentifier(str(folder))

    def given(self, properties: dict[str, str], old: bool = not TABLE_INFO) -> tuple[Any, ...]:
        """A table of (id BIGINT), as Spark gives it to a catalog: since 4.1 as one object."""
        schema = self.jvm.org.apache.spark.sql.types.StructType.fromDDL("id BIGINT")
        util = self.jvm.org.apache.spark.sql.connector.catalog.CatalogV2Util
        expressions = self.jvm.org.apache.spark.sql.connector.expressions
        none = self.session._sc._gateway.new_array(expressions.Transform, 0)
        if old:
            return schema, none, properties
        builder = self.jvm.org.apache.spark.sql.connector.catalog.TableInfo.Builder()
        columns = util.structTypeToV2Columns(schema)
        built = builder.withColumns(columns).withPartitions(none).withProperties(properties)
        return (built.build(),)

    def create(self, key: str | None = "k1", **properties: str) -> None:
        given = {name.replace("_", "."): value for name, value in properties.items()}
        if key is not None:
            given["encryption.key-id"] = key
        self.catalog.createTable(self.ident, *self.given(given))

    def write(self, ids: list[int], mode: str = "append", selector: str = "") -> None:
        frame(self.session, ids).write.format("iceberg").mode(mode).save(f"{self.folder}{selector}")

    def read(self, selector: str = "", **options: str) -> list[int]:
        rows = (
            self.session.read.format("iceberg").options(**options).load(f"{self.folder}{selector}")
        )
        return sorted(row.id for row in rows.collect())

    def problems(self) -> list[str]:
        return [
            problem for path in files_below(self.folder) if (problem := plaintext_problem(path))
        ]

    def magics(self) -> set[bytes]:
        return {magic(path) for path in files_below(self.folder)}


def frame(session: SparkSession, ids: list[int]) -> DataFrame:
    return session.createDataFrame([(i,) for i in ids], "id BIGINT").coalesce(1)


@pytest.fixture
def place(session: SparkSession, tmp_path: Path) -> Place:
    return Place(session, tmp_path / "t")


def test_create_append_overwrite_read(place: Place) -> None:
    place.create()
    place.write([1, 2])
    assert place.read() == [1, 2]
    place.write([3])
    assert place.read() == [1, 2, 3]
    place.write([4], mode="overwrite")
    assert place.read() == [4]
    assert place.magics() == {b"PARE", b"AGS1"}
    assert place.problems() == []


@pytest.mark.nightly
def test_selectors(place: Place) -> None:
    place.create()
    place.write([1])
    first = place.session.read.format("iceberg").load(f"{place.folder}#snapshots").first()
    assert first is not None
    place.write([2])
    table = place.catalog.loadTable(place.ident).table()
    table.manageSnapshots().createBranch("b", first.snapshot_id).createTag(
        "g", first.snapshot_id
    ).commit()
    place.write([3], selector="#branch_b")
    assert place.read("#branch_b") == place.read(branch="b") == [1, 3]
    assert place.read(f"#snapshot_id_{first.snapshot_id}") == place.read("#tag_g") == [1]
    assert place.read(versionAsOf="g") == [1]
    files = place.session.read.format("iceberg").load(f"{place.folder}#files")
    assert [row.key_metadata for row in files.select("key_metadata").collect()] == [None, None]
    past = place.session.read.format("iceberg").load(
        f"{place.folder}#files,snapshot_id_{first.snapshot_id}"
    )
    assert past.count() == 1
    assert place.read() == [1, 2]
    assert place.problems() == []


@pytest.mark.nightly
def test_stream_by_path(place: Place, tmp_path: Path) -> None:
    place.create()
    place.write([1, 2])
    target = Place(place.session, tmp_path / "target")
    target.create("k2")
    for expected in ([1, 2], [1, 2, 3]):
        query = (
            place.session.readStream.format("iceberg")
            .load(str(place.folder))
            .writeStream.format("iceberg")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(target.folder))
        )
        assert query.awaitTermination(120), "the stream did not end"
        assert target.read() == expected
        place.write([3])
    assert target.problems() == []


OLD = [
    pytest.param(
        False, id="TableInfo", marks=pytest.mark.skipif(not TABLE_INFO, reason="new in Spark 4.1")
    ),
    pytest.param(True, id="deprecated", marks=pytest.mark.nightly),
]
FORMS = ("stageCreate", "stageReplace", "stageCreateOrReplace")


@pytest.mark.parametrize(
    "form", [*(pytest.param(form, marks=pytest.mark.nightly) for form in FORMS[:2]), FORMS[2]]
)
@pytest.mark.parametrize("old", OLD)
def test_staged(place: Place, form: str, old: bool) -> None:
    """What CREATE TABLE AS SELECT and REPLACE call, in both forms."""
    if form == "stageReplace":
        place.create()
        place.write([1])
    given = place.given({"encryption.key-id": "k1"}, old)
    staged = getattr(place.catalog, form)(place.ident, *given)
    assert staged.table().encryption().getClass().getSimpleName() == "TableEncryptionManager"
    staged.commitStagedChanges()
    place.write([7])
    assert place.read() == [7]
    assert place.problems() == []


def test_the_deprecated_create(place: Place) -> None:
    place.catalog.createTable(place.ident, *place.given({"encryption.key-id": "k1"}, old=True))
    place.write([7])
    assert place.magics() == {b"PARE", b"AGS1"}


def test_the_session_catalog(place: Place) -> None:
    """EncryptedSessionCatalog hands a path on, in both forms."""
    manager = place.session._jsparkSession.sessionState().catalogManager()
    catalog = manager.catalog("spark_catalog")
    catalog.createTable(place.ident, *place.given({"encryption.key-id": "k1"}))
    staged = catalog.stageReplace(place.ident, *place.given({"encryption.key-id": "k1"}, old=True))
    staged.commitStagedChanges()
    assert catalog.loadTable(place.ident).properties()["encryption.key-id"] == "k1"
    place.write([1])
    assert place.read() == [1]
    assert place.problems() == []


def test_a_key_that_the_kms_lacks(place: Place) -> None:
    with pytest.raises(Exception, match="no key 'nobody'"):
        place.create("nobody")
    assert everything_below(place.folder) == set()


def test_plaintext_tables_are_as_icebergs(place: Place) -> None:
    place.create(key=None)
    place.write([1])
    assert place.read() == [1]
    assert b"PAR1" in place.magics()


def test_required(strict: SparkSession, place: Place) -> None:
    """Nothing is created, read or written without a key id."""
    refused = Place(strict, place.folder)
    given = refused.given({})
    for form in ("createTable", *FORMS):
        if form != "stageReplace":
            with pytest.raises(
                Exception, match=r"encryption\.required|encryption\.plaintext-tables"
            ):
                getattr(refused.catalog, form)(refused.ident, *given)
    assert everything_below(place.folder) == set()
    place.create(key=None)
    place.write([1])
    with untouched(place.folder):
        for use in (
            refused.read,
            lambda: refused.write([2]),
            lambda: refused.write([2], "overwrite"),
        ):
            with pytest.raises(Exception, match="plaintext-tables=refuse"):
                use()
        with pytest.raises(Exception, match=r"encryption\.key-id .*encryption\.required=true"):
            refused.catalog.stageReplace(refused.ident, *given)
    encrypted = Place(strict, place.folder.with_name("encrypted"))
    encrypted.create()
    encrypted.write([1])
    assert encrypted.read() == [1]


def test_alter_drop_purge(place: Place, tmp_path: Path) -> None:
    place.create()
    place.write([1])
    change = place.jvm.org.apache.spark.sql.connector.catalog.TableChange
    changes = place.session._sc._gateway.new_array(change, 1)
    changes[0] = change.removeProperty("encryption.key-id")
    with untouched(place.folder), pytest.raises(Exception, match="cannot be removed"):
        place.catalog.alterTable(place.ident, changes)
    changes[0] = change.setProperty("comment", "seen")
    assert place.catalog.alterTable(place.ident, changes).properties()["comment"] == "seen"
    assert place.catalog.tableExists(place.ident)
    assert place.catalog.dropTable(place.ident)
    assert not place.catalog.tableExists(place.ident)
    assert everything_below(place.folder) == set()
    place.create()
    place.write([2])
    assert place.catalog.purgeTable(place.ident)
    assert everything_below(place.folder) == set()
    assert not place.catalog.dropTable(place.ident)


def test_a_table_of_a_hadoop_catalog(hadoop: Lake, session: SparkSession, tmp_path: Path) -> None:
    """By its name and by its path it is one table, whose metadata is authenticated either way."""
    table = hadoop.create(columns="id BIGINT")
    hadoop.sql(f"INSERT INTO {table} VALUES (1)")
    place = Place(session, hadoop.folder / "t")
    relative = os.path.relpath(place.folder)
    for location in (place.folder, place.folder.as_uri(), f"{place.folder}/", relative):
        rows = session.read.format("iceberg").load(str(location))
        assert [row.id for row in rows.collect()] == [1]
    place.write([2])
    hadoop.sql(f"REFRESH TABLE {table}")
    assert [row.id for row in hadoop.sql(f"SELECT id FROM {table} ORDER BY id")] == [1, 2]
    hadoop.sql(f"INSERT INTO {table} VALUES (3)")
    assert place.read() == [1, 2, 3]
    assert verify_table(hadoop.spark, table).ok
    newest = max(
        place.folder.glob("metadata/v*.metadata.json"), key=lambda path: path.stat().st_mtime
    )
    one_file = session._jvm.org.apache.iceberg.spark.PathIdentifier(str(newest))
    with untouched(place.folder), pytest.raises(Exception, match="drop a table by its metadata"):
        place.catalog.dropTable(one_file)
    old = session.read.format("iceberg").load(str(newest))
    assert sorted(row.id for row in old.collect()) == [1, 2, 3]
    change(newest, re.sub(rb'("name"\s*:\s*)"id"', rb'\1"ix"', newest.read_bytes()))
    with pytest.raises(Exception, match="its metadata is refused"):
        place.read()


@pytest.mark.nightly
def test_a_table_made_by_path_has_a_name(place: Place, spark: SparkSession, world: World) -> None:
    """A Hadoop catalog whose warehouse is the folder above has it by name, for what wants one."""
    place.create()
    place.write([1])
    name = f"above_{uuid.uuid4().hex[:6]}"
    options = {**world.ours("hadoop"), "warehouse": str(place.folder.parent)}
    for key, value in catalog_conf(name, OURS, options).items():
        spark.conf.set(key, value)
    assert [row.id for row in spark.sql(f"SELECT * FROM {name}.t").collect()] == [1]
    assert verify_table(spark, f"{name}.t").ok


@pytest.mark.parametrize("mode", ["errorifexists", "ignore", "append", "overwrite"])
def test_saving_where_no_table_is(place: Place, mode: str) -> None:
    """Spark makes no table by a path, with Iceberg's own catalog either: nothing is written."""
    says = pytest.raises(Exception, match="Namespace does not exist|TABLE_OR_VIEW_NOT_FOUND")
    with untouched(place.folder.parent), says:
        place.write([1], mode)


def test_sql_has_no_paths(place: Place) -> None:
    place.create()
    with pytest.raises(Exception, match="UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"):
        place.session.sql(f"SELECT * FROM iceberg.`{place.folder}`").collect()


@pytest.mark.nightly
def test_procedures_take_paths(place: Place) -> None:
    place.create()
    place.write([1])
    for procedure, arguments in (
        ("rotate_master_key", ", new_key_id => 'k2'"),
        ("rotate_kek", ", rewrap => true"),
        ("repair_table", ", confirm => true"),
    ):
        call = f"CALL {DEFAULT}.system.{procedure}(table => '{place.folder}'{arguments})"
        rows = place.session.sql(call).collect()
        assert [row.committed for row in rows] == ([] if procedure == "repair_table" else [True])
    done = rotate_master_key(place.session, str(place.folder), "k1")
    assert (done.old_key_id, done.new_key_id) == ("k2", "k1")
    assert rotate_kek(place.session, str(place.folder), rewrap=True).rewrapped == 1
    assert repair_table(place.session, str(place.folder)).ok
    place.write([2])
    assert place.read() == [1, 2]
    assert place.problems() == []
    with pytest.raises(Exception, match="takes no paths"):
        place.session.sql(f"CALL {DEFAULT}.system.purge_without_key(table => '{place.folder}')")
