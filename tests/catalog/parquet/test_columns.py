"""Spark's own Parquet files with keys for their footers and columns."""

import re
import uuid
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness.columns import MARKER, keyed_session, rows
from harness.files import untouched
from harness.jars import BUILT
from harness.world import World
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from pyspark_iceberg_crypto import (
    AccessDeniedError,
    ConfigurationError,
    KeyNotFoundError,
    NotSupportedError,
    ParquetKeys,
    PlaintextFoundError,
    TamperedError,
    inspect_file,
    rotate_parquet_keys,
    typed_errors,
    verify_folder,
)
from pyspark_iceberg_crypto.cli import main
from pyspark_iceberg_crypto.columns.parquet import FACTORY
from pyspark_iceberg_crypto.doctor import diagnose
from pyspark_iceberg_crypto.doctor._session import PARQUET
from pyspark_iceberg_crypto.reports import _scope
from pyspark_iceberg_crypto.verbs.inspection import inspect_local

KEYS = ParquetKeys(footer="k1", columns={"ssn": "k2", "address.street": "k-128"})
NO_KEYS = ParquetKeys(plaintext_writes=True)


def session(spark: SparkSession, world: World, **more: str) -> SparkSession:
    made = keyed_session(spark, world.keystore.kms(), world.root / "parquet", parquet_columns=KEYS)
    for name, value in more.items():
        made.conf.set(name, value)
    return made


@pytest.fixture(scope="module")
def own(spark: SparkSession, world: World) -> SparkSession:
    return session(spark, world)


@pytest.fixture(scope="module")
def people(own: SparkSession) -> DataFrame:
    return rows(own)


def catalog(spark: SparkSession) -> str:
    """The name of the session's own."""
    names = (row.key for row in spark.sql("SET").collect())
    found = (name for name in names if re.fullmatch(r"spark\.sql\.catalog\.keyed_\w+", name))
    return next(found).rpartition(".")[2]


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("part-*.parquet"))


def forget_checksums(folder: Path) -> None:
    """Hadoop's own would find a change first."""
    for file in folder.glob(".*.crc"):
        file.unlink()


def test_what_is_written_is_encrypted_and_read_again(
    own: SparkSession, people: DataFrame, tmp_path: Path
) -> None:
    people.write.option("compression", "none").parquet(f"{tmp_path}/t")
    for file in files(tmp_path):
        data = file.read_bytes()
        assert data[:4] == data[-4:] == b"PARE"
        assert MARKER.encode() not in data
        assert b"Ulm" not in data  # under the footer's key
    again = own.read.parquet(f"{tmp_path}/t")
    assert again.schema.fieldNames() == ["ssn", "id", "address", "tags"]
    assert again.filter(f"ssn = '{MARKER}' AND address.street = '{MARKER}'").count() == 20
    assert again.agg(fn.sum("id")).first()[0] == 190


def test_who_lacks_a_columns_key_reads_the_others(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    people.write.parquet(f"{tmp_path}/t")
    clerk = session(spark, world, **{"iceberg-crypto.encryption.allowed-key-ids": "k1, k-128"})
    seen = clerk.read.parquet(f"{tmp_path}/t")
    assert seen.agg(fn.sum("id")).first()[0] == 190
    assert seen.filter("id = 3").select("address.city", "address.street").first()[0] == "Ulm"
    with (
        pytest.raises(AccessDeniedError, match="Column 'ssn' of .* key 'k2'") as denied,
        typed_errors(),
    ):
        seen.select("ssn").collect()
    assert any(file.name in denied.value.message for file in files(tmp_path))
    assert "select them by name" in denied.value.hint


@pytest.mark.nightly
def test_write_options(own: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    uniform = ParquetKeys(uniform="k2", algorithm="AES_GCM_CTR_V1")
    people.write.options(**uniform.options()).parquet(f"{tmp_path}/u")
    people.write.options(**NO_KEYS.options()).parquet(f"{tmp_path}/p")
    open_footer = ParquetKeys(
        footer="k1", columns={"ssn": "k2"}, complete=False, plaintext_footer=True
    )
    people.write.options(**open_footer.options()).parquet(f"{tmp_path}/o")
    tags = ParquetKeys(
        footer="k1", columns={"address": "k2", "tags": "k2"}, key_material_beside=True
    )
    people.write.options(**tags.options()).parquet(f"{tmp_path}/b")
    for folder in "upob":
        assert own.read.parquet(f"{tmp_path}/{folder}").filter(f"ssn = '{MARKER}'").count() == 20
    assert len(list((tmp_path / "b").glob("_KEY_MATERIAL_FOR_part-*.parquet.json"))) == len(
        files(tmp_path / "b")
    )


@pytest.mark.parametrize(
    ("keys", "error", "told"),
    [
        (ParquetKeys(footer="k1", columns={"snn": "k2"}), ConfigurationError, "snn"),
        (ParquetKeys(uniform="no-such-key"), KeyNotFoundError, "no-such-key"),
        (ParquetKeys(), PlaintextFoundError, "no key is named"),
    ],
)
def test_refused(
    own: SparkSession,
    people: DataFrame,
    tmp_path: Path,
    keys: ParquetKeys,
    error: type[Exception],
    told: str,
) -> None:
    """Before an overwriting statement deletes what is there."""
    people.write.parquet(f"{tmp_path}/t")
    with untouched(tmp_path), pytest.raises(error, match=told), typed_errors():
        people.write.options(**keys.options()).mode("overwrite").parquet(f"{tmp_path}/t")
    assert own.read.parquet(f"{tmp_path}/t").count() == 20


@pytest.mark.nightly
def test_a_column_of_folders_has_no_key(
    own: SparkSession, people: DataFrame, tmp_path: Path
) -> None:
    """However partitionBy spells it, an overwriting statement deletes nothing."""
    people.write.parquet(f"{tmp_path}/t")
    told = "'ssn', which is not in the file"
    with untouched(tmp_path), pytest.raises(ConfigurationError, match=told), typed_errors():
        people.write.partitionBy("SSN").mode("overwrite").parquet(f"{tmp_path}/t")
    people.write.partitionBy("ID").parquet(f"{tmp_path}/p")
    assert own.read.parquet(f"{tmp_path}/p").agg(fn.sum("id")).first()[0] == 190


@pytest.mark.parametrize(
    "option",
    [
        {"parquet.summary.metadata.level": "ALL"},
        pytest.param({"parquet.enable.summary-metadata": "true"}, marks=pytest.mark.nightly),
    ],
)
def test_no_summary_files(people: DataFrame, tmp_path: Path, option: dict[str, str]) -> None:
    """They would have the statistics of encrypted columns in plaintext."""
    people.write.parquet(f"{tmp_path}/t")
    with untouched(tmp_path), pytest.raises(NotSupportedError, match="_metadata"), typed_errors():
        people.write.options(**option).mode("overwrite").parquet(f"{tmp_path}/t")
    assert not list(tmp_path.rglob("_*metadata"))


def test_options_in_a_session_without_keys(spark: SparkSession, tmp_path: Path) -> None:
    """They bring the factory; a KMS they do not."""
    people = rows(spark)
    people.write.parquet(f"{tmp_path}/t")
    before = files(tmp_path)
    options = KEYS.options()
    with pytest.raises(ConfigurationError, match="no KMS is") as told, typed_errors():
        people.write.options(**options).mode("overwrite").parquet(f"{tmp_path}/t")
    assert "configure_spark(parquet_columns=...)" in told.value.hint
    del options["parquet.crypto.factory.class"]
    with pytest.raises(ConfigurationError, match="/t, and parquet.* is not set"), typed_errors():
        people.write.options(**options).mode("overwrite").parquet(f"{tmp_path}/t")
    assert files(tmp_path) == before


@pytest.mark.nightly
def test_options_that_do_nothing_are_refused(
    own: SparkSession, people: DataFrame, tmp_path: Path
) -> None:
    """In capitals, and where Spark drops them."""
    people.write.parquet(f"{tmp_path}/t")
    before = files(tmp_path)
    capitals = {"Parquet.Encryption.Footer.Key": "k2"}
    with pytest.raises(ConfigurationError, match=r"Footer\.Key of .* case matters"), typed_errors():
        people.write.options(**capitals).mode("overwrite").parquet(f"{tmp_path}/t")
    assert files(tmp_path) == before
    name = f"spark_catalog.default.t_{uuid.uuid4().hex}"
    with pytest.raises(ConfigurationError, match="case matters"), typed_errors():
        own.sql(f"CREATE TABLE {name} (ssn STRING) USING parquet OPTIONS (PARQUET.CRYPTO.X 'y')")
    writer = people.write.option("path", f"{tmp_path}/s").options(**KEYS.options())
    writer.saveAsTable(name)
    people.write.mode("append").options(**KEYS.options()).saveAsTable(name)
    people.write.mode("append").saveAsTable(name)
    other = people.write.mode("append").options(**ParquetKeys(uniform="k1").options())
    with pytest.raises(ConfigurationError, match="Spark drops option parquet"), typed_errors():
        other.saveAsTable(name)
    assert own.table(name).count() == 60
    with pytest.raises(KeyNotFoundError), typed_errors():
        people.write.mode("overwrite").options(**ParquetKeys(uniform="nope").options()).saveAsTable(
            name
        )
    # Spark 3.5 drops the table before it plans the write
    assert own.catalog.tableExists(name) == (BUILT.spark != "3.5")
    own.sql(f"DROP TABLE IF EXISTS {name}")
    stream = own.readStream.schema(people.schema).parquet(f"{tmp_path}/t").writeStream
    stream = stream.options(
        **ParquetKeys(uniform="k1").options(), checkpointLocation=f"{tmp_path}/c"
    )
    with pytest.raises(Exception, match=r"Spark drops .* of a stream .*parquet\.encryption"):
        stream.trigger(availableNow=True).start(f"{tmp_path}/stream").awaitTermination()
    assert files(tmp_path / "stream") == []


@pytest.mark.nightly
def test_values_beside_the_files_are_refused(
    own: SparkSession, people: DataFrame, tmp_path: Path
) -> None:
    """In the metastore's statistics, and in the schema, where machine learning notes them."""
    name = f"spark_catalog.default.t_{uuid.uuid4().hex}"
    some = ParquetKeys(footer="k1", columns={"ssn": "k2"}, complete=False)
    people.write.option("path", f"{tmp_path}/t").options(**some.options()).saveAsTable(name)
    for columns in ("FOR COLUMNS id, SSN", "FOR ALL COLUMNS"):
        with pytest.raises(NotSupportedError, match=r"keys \(ssn\) of table"), typed_errors():
            own.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS {columns}")
    own.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR COLUMNS id")
    own.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS")
    own.sql(f"DROP TABLE {name}")
    noted = people.withMetadata("id", {"ml_attr": {"vals": [MARKER]}})
    with pytest.raises(NotSupportedError, match="'id' of .* has metadata ml_attr"), typed_errors():
        noted.write.parquet(f"{tmp_path}/m")
    with pytest.raises(NotSupportedError, match="ml_attr"), typed_errors():
        noted.write.options(**ParquetKeys(uniform="k1").options()).saveAsTable(name)
    with pytest.raises(NotSupportedError, match="'all' of .* has metadata ml_attr"), typed_errors():
        noted.select("ssn", "address", fn.array(fn.struct("id")).alias("all")).write.parquet(
            f"{tmp_path}/m"
        )
    noted.write.options(**ParquetKeys(uniform="k1").options()).parquet(f"{tmp_path}/m")
    assert not [f for f in files(tmp_path / "m") if MARKER.encode() in f.read_bytes()]
    stream = own.readStream.schema(people.schema).parquet(f"{tmp_path}/m")
    stream = stream.withMetadata("id", {"ml_attr": {"vals": [MARKER]}}).writeStream
    stream = stream.option("checkpointLocation", f"{tmp_path}/c").trigger(availableNow=True)
    with pytest.raises(Exception, match="'id' of the files of a stream has metadata ml_attr"):
        stream.start(f"{tmp_path}/s").awaitTermination()
    with pytest.raises(NotSupportedError, match="'id' of table .* ml_attr"), typed_errors():
        stream.toTable(name)


def test_statistics_of_files_with_other_keys_than_the_settings_name(
    own: SparkSession, people: DataFrame, tmp_path: Path
) -> None:
    """The keys may have been options of a write, or the session's of yesterday."""
    name = f"spark_catalog.default.t_{uuid.uuid4().hex}"
    some = ParquetKeys(footer="k1", columns={"id": "k2"}, complete=False)
    people.write.options(**some.options()).parquet(f"{tmp_path}/t")
    none = ", ".join(f"'{option}' '{value}'" for option, value in NO_KEYS.options().items())
    own.sql(f"CREATE TABLE {name} USING parquet OPTIONS ({none}) LOCATION '{tmp_path}/t'")
    with pytest.raises(NotSupportedError, match=r"keys \(id\) of table"), typed_errors():
        own.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR COLUMNS ssn, ID")
    own.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR COLUMNS ssn")
    own.sql(f"DROP TABLE {name}")


@pytest.mark.nightly
def test_tables_of_sql(own: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    """Keys are options of the table; CREATE TABLE AS SELECT, INSERT OVERWRITE and partitions."""
    people.createOrReplaceTempView("people")
    name = f"spark_catalog.default.t_{uuid.uuid4().hex}"
    options = "'parquet.encryption.uniform.key' 'k2', 'parquet.encryption.{}.key' ''"
    options = options.format("footer") + ", 'parquet.encryption.column.keys' ''"
    options += ", 'parquet.encryption.complete.columns' 'false'"
    own.sql(
        f"CREATE TABLE {name} USING parquet OPTIONS ({options}) PARTITIONED BY (id)"
        f" LOCATION '{tmp_path}/t' AS SELECT ssn, address, id FROM people"
    )
    own.sql(f"INSERT OVERWRITE {name} SELECT ssn, address, id + 1 FROM people")
    assert own.table(name).agg(fn.sum("id")).first()[0] == 210
    seen = inspect_file(own, str(files(tmp_path)[0]))
    assert {c.key_id for c in seen.columns or ()} == {"k2"}
    own.sql(f"DROP TABLE {name}")
    with pytest.raises(ConfigurationError, match="'id', which is not in the file"), typed_errors():
        columns = ParquetKeys(footer="k1", columns={"id": "k2"})
        people.write.partitionBy("id").options(**columns.options()).parquet(f"{tmp_path}/p")


@pytest.mark.nightly
def test_iceberg(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    people.write.parquet(f"{tmp_path}/t")
    cat = catalog(own)
    own.sql(f"CREATE TABLE {cat}.db.t (id INT) USING iceberg")
    own.sql(f"INSERT INTO {cat}.db.t VALUES (1)")
    assert own.table(f"{cat}.db.t").count() == 1
    own.sql(
        f"CREATE TABLE {cat}.db.e (id INT) USING iceberg TBLPROPERTIES('encryption.key-id'='k1')"
    )
    own.sql(f"INSERT INTO {cat}.db.e VALUES (1)")
    assert own.table(f"{cat}.db.e").count() == 1
    people.select("id").write.options(**NO_KEYS.options()).parquet(f"{tmp_path}/p")
    own.sql(f"CREATE TABLE {cat}.db.a (id BIGINT) USING iceberg")
    own.sql(f"CALL {cat}.system.add_files('db.a', '`parquet`.`{tmp_path}/p`')")
    assert own.table(f"{cat}.db.a").count() == 20


def test_a_look_at_files(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    """What is known with the footer's key, without it, and of a plaintext footer."""
    people.write.parquet(f"{tmp_path}/t")
    file = str(files(tmp_path)[0])
    seen = inspect_file(own, file, pages=True)
    assert seen.encrypted
    assert seen.pages_checked
    assert (seen.algorithm, seen.pages_authenticated, seen.footer, seen.footer_key) == (
        "AES_GCM_V1",
        True,
        "encrypted",
        "k1",
    )
    assert seen.columns is not None
    # Parquet 1.13 knows no rest of the columns: each is named, with the footer's master key
    rest = ("column key" if BUILT.spark == "3.5" else "footer key", "k1")
    assert {c.name: (c.protected_by, c.key_id) for c in seen.columns} == {
        "ssn": ("column key", "k2"),
        "id": rest,
        "address.street": ("column key", "k-128"),
        "address.city": rest,
        "tags.list.element": rest,
    }
    blind = inspect_file(spark, file)
    assert blind.columns is None
    assert "no KMS" in str(blind.unknown)
    assert blind.footer_key == "k1"
    without = inspect_local(file)
    assert (without.footer_key, without.columns) == ("k1", None)
    told = CliRunner().invoke(main, ["inspect", file, "--expect-encrypted"])
    assert told.exit_code == 2, told.output
    clerk = session(spark, world, **{"iceberg-crypto.encryption.allowed-key-ids": "k1, k-128"})
    left = inspect_file(clerk, file, pages=True)
    assert not left.pages_checked
    assert list(left.columns_left or ()) == ["ssn"]
    data = bytearray(Path(file).read_bytes())
    data[60] ^= 1  # in the first page
    changed = tmp_path / "changed.parquet"
    changed.write_bytes(data)
    with pytest.raises(TamperedError, match=r"changed\.parquet"):
        inspect_file(own, str(changed), pages=True)


@pytest.mark.nightly
def test_folders(own: SparkSession, spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    people.write.parquet(f"{tmp_path}/t")
    beside = ParquetKeys(uniform="k1", key_material_beside=True)
    people.write.options(**beside.options()).mode("append").parquet(f"{tmp_path}/t")
    report = verify_folder(own, f"{tmp_path}/t")
    assert report.ok, report
    assert not verify_folder(spark, f"{tmp_path}/t").ok
    people.write.options(**ParquetKeys(uniform="k1", algorithm="AES_GCM_CTR_V1").options()).parquet(
        f"{tmp_path}/c"
    )
    assert {p.code for p in verify_folder(own, f"{tmp_path}/c").problems} == {"unauthenticated"}
    partly = ParquetKeys(footer="k1", columns={"ssn": "k2"}, complete=False)
    people.write.options(**partly.options()).parquet(f"{tmp_path}/p")
    found = verify_folder(own, f"{tmp_path}/p").problems
    assert {p.code for p in found} == {"plaintext"}
    assert "id, address.street, address.city" in found[0].problem


@pytest.mark.nightly
def test_pages_of_folders(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    """Executors read every page, as far as there are keys."""
    folder = tmp_path / "t"
    people.write.option("compression", "none").parquet(str(folder))
    with verify_folder(own, str(folder), deep=True) as report:
        assert report.ok, report
        assert report.depth == "deep"
        assert "checked by its authentication tag. Of" in _scope.depths([report])
    clerk = session(spark, world, **{"iceberg-crypto.encryption.allowed-key-ids": "k1, k-128"})
    report = verify_folder(clerk, str(folder), deep=True)
    assert {(p.code, p.problem) for p in report.problems} == {
        ("unreadable", "columns whose keys may not be used were not checked: ssn")
    }
    forget_checksums(folder)
    file = files(folder)[0]
    data = bytearray(file.read_bytes())
    data[60] ^= 1  # in the first page, which is of ssn
    file.write_bytes(data)
    assert verify_folder(own, str(folder)).ok, "by the first bytes nothing is wrong"
    (problem,) = verify_folder(own, str(folder), deep=True).problems
    assert (problem.code, problem.path.endswith(file.name)) == ("tampered", True)
    assert "column ssn in row group 0 fails authentication with" in problem.problem


@pytest.mark.nightly
def test_pages_of_every_column_are_read(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    """A flipped bit anywhere; levels of pages of version 2; files whose keys are elsewhere."""
    folder = tmp_path / "t"
    people.coalesce(1).write.option("compression", "none").parquet(str(folder))
    forget_checksums(folder)
    (file,) = files(folder)
    good = file.read_bytes()
    clerk = session(spark, world, **{"iceberg-crypto.encryption.allowed-key-ids": "k1, k-128"})
    unseen = 0
    footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    for position in range(5, len(good), len(good) // 25):
        file.write_bytes(good[:position] + bytes([good[position] ^ 4]) + good[position + 1 :])
        (found,) = verify_folder(own, str(folder), deep=True).problems
        # what leads to the footer's key is plaintext, and may lead nowhere then
        at_all = ("tampered",) if position < footer else ("tampered", "unreadable")
        assert found.code in at_all, position
        (found,) = verify_folder(clerk, str(folder), deep=True).problems
        unseen += found.code == "unreadable"  # in ssn
    assert 0 < unseen < 15
    by_parquet = {
        **ParquetKeys(uniform="k1").options(),
        "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
        "parquet.encryption.kms.client.class": "io.icebergcrypto.parquet.ParquetKmsClient",
        "parquet.writer.version": "v2",
    }
    people.write.options(**by_parquet).option("compression", "none").parquet(f"{tmp_path}/v2")
    found = verify_folder(own, f"{tmp_path}/v2", deep=True).problems[0]
    assert found.code == "plaintext"
    assert "repetition and definition levels are plaintext" in found.problem
    ctr = ParquetKeys(uniform="k1", algorithm="AES_GCM_CTR_V1")
    people.write.options(**ctr.options()).parquet(f"{tmp_path}/c")
    assert {p.code for p in verify_folder(own, f"{tmp_path}/c", deep=True).problems} == {
        "unauthenticated"
    }
    table = f"{catalog(own)}.db.deep"
    own.sql(f"CREATE TABLE {table} (id INT) USING iceberg TBLPROPERTIES('encryption.key-id'='k1')")
    own.sql(f"INSERT INTO {table} VALUES (1)")
    report = verify_folder(own, f"{world.root}/parquet/db/deep", deep=True)
    assert {p.code for p in report.problems} == {"unreadable"}
    assert "only the metadata of its table has its key" in report.problems[0].problem


def test_plaintext_is_not_read(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    people.write.parquet(f"{tmp_path}/t")
    people.write.options(**NO_KEYS.options()).parquet(f"{tmp_path}/p")
    strict = session(spark, world, **{"iceberg-crypto.parquet.plaintext-reads": "refuse"})
    assert strict.read.parquet(f"{tmp_path}/t").count() == 20
    with (
        pytest.raises(PlaintextFoundError, match=r"part-.*\.parquet has no key") as told,
        typed_errors(),
    ):
        strict.read.parquet(f"{tmp_path}/p").collect()
    assert "iceberg-crypto.parquet.plaintext-reads=allow" in told.value.hint
    assert own.read.parquet(f"{tmp_path}/p").count() == 20


def test_a_table_is_no_laxer_than_the_session(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    """Whoever may alter a table could have plaintext read or written in place of encrypted files."""
    name = f"spark_catalog.default.t_{uuid.uuid4().hex}"
    people.write.option("path", f"{tmp_path}/t").options(**KEYS.options()).saveAsTable(name)
    people.write.options(**NO_KEYS.options()).mode("append").parquet(f"{tmp_path}/t")
    reads, writes, integrity = (
        f"iceberg-crypto.parquet.{rest}"
        for rest in ("plaintext-reads", "plaintext-writes", "require-integrity")
    )

    def alter(option: str, value: str, table: str = name) -> None:
        own.sql(f"ALTER TABLE {table} SET SERDEPROPERTIES ('{option}'='{value}')")

    strict, later = session(spark, world, **{reads: "refuse"}), session(spark, world)
    alter(reads, "allow")
    assert later.table(name).count() == 40
    told = "this session refuses plaintext"
    with pytest.raises(ConfigurationError, match=told), typed_errors():
        strict.table(name).collect()
    alter(reads, "refuse")
    with pytest.raises(PlaintextFoundError, match="has no key"), typed_errors():
        strict.table(name).collect()
    later.conf.set(reads, "refuse")
    # Spark 3.5 still has the table's old options, until the statement is refused
    with pytest.raises((ConfigurationError, PlaintextFoundError)), typed_errors():
        later.table(name).collect()
    with pytest.raises(PlaintextFoundError, match="has no key"), typed_errors():
        later.table(name).collect()
    own.sql(f"CREATE TABLE {name}_2 USING parquet LOCATION '{tmp_path}/t'")
    alter("Iceberg-Crypto.Parquet.Plaintext-Reads", "allow", f"{name}_2")
    with pytest.raises(ConfigurationError, match=told), typed_errors():
        strict.table(f"{name}_2").collect()
    own.sql(f"DROP TABLE {name}_2")

    insert = f"INSERT INTO {name} SELECT * FROM {name} LIMIT 1"
    alter(reads, "allow")
    alter(integrity, "false")
    alter("parquet.encryption.algorithm", "AES_GCM_CTR_V1")
    session(spark, world).sql(insert)
    whole = session(spark, world, **{integrity: "true"})
    with pytest.raises(ConfigurationError, match="not authenticate pages"), typed_errors():
        whole.sql(insert)
    for option in NO_KEYS.options().items():
        alter(*option)
    with pytest.raises(PlaintextFoundError, match="no key is named"), typed_errors():
        session(spark, world).sql(insert)
    lax = session(spark, world, **{writes: "allow"})
    lax.sql(insert)
    lax.conf.unset(writes)  # then only the table says anything
    lax.sql(insert)
    alter("parquet.crypto.factory.class", "")
    turned = session(spark, world)
    with pytest.raises(ConfigurationError, match="or whether one is, .*factory"), typed_errors():
        turned.sql(insert)
    alter("parquet.crypto.factory.class", FACTORY)
    with pytest.raises(PlaintextFoundError, match="no key is named"), typed_errors():
        turned.sql(insert)
    own.sql(f"DROP TABLE {name}")
    people.write.options(**NO_KEYS.options()).saveAsTable(name)  # the writer's own
    assert own.table(name).count() == 20
    own.sql(f"DROP TABLE {name}")


def test_settings_that_come_too_late(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    """Spark reads its prefix for Hadoop's settings only when it starts."""
    people.write.parquet(f"{tmp_path}/t")
    footer = "spark.hadoop.parquet.encryption.footer.key"
    late = session(spark, world, **{footer: "k2"})
    told = r"spark\.hadoop\.parquet\.encryption\.footer\.key, which does nothing now"
    rows = late.range(1)
    with untouched(tmp_path), pytest.raises(ConfigurationError, match=told), typed_errors():
        rows.write.mode("overwrite").parquet(f"{tmp_path}/t")
    with pytest.raises(ConfigurationError, match=told) as error, typed_errors():
        late.read.parquet(f"{tmp_path}/t").collect()
    assert "Unset it, and set parquet.encryption.footer.key; for Hudi" in error.value.hint
    late.sql(f"RESET {footer}")
    assert late.read.parquet(f"{tmp_path}/t").count() == 20
    write = people.write.option(footer, "k2").mode("overwrite")
    with (
        untouched(tmp_path),
        pytest.raises(ConfigurationError, match="only for Spark's start"),
        typed_errors(),
    ):
        write.parquet(f"{tmp_path}/t")


@pytest.mark.nightly
def test_doctor(own: SparkSession, spark: SparkSession, world: World) -> None:
    found = diagnose(own, catalog(own), key_ids=["k1"])
    (step,) = [step for step in found.steps if step.name == PARQUET]
    assert (step.status.value, step.detail) == ("ok", "k1, k2, k-128")
    assert not [s for s in diagnose(spark, "enc_jdbc", key_ids=["k1"]).steps if s.name == PARQUET]
    wrong = session(spark, world, **{"iceberg-crypto.parquet.plaintext-read": "refuse"})
    found = diagnose(wrong, catalog(wrong), key_ids=["k1"])
    (step,) = [step for step in found.steps if step.name == PARQUET]
    assert step.status.value == "failed"
    assert "plaintext-reads" in step.hint
    wrong.conf.unset("iceberg-crypto.parquet.plaintext-read")
    wrong.conf.set("spark.hadoop.iceberg-crypto.parquet.plaintext-reads", "refuse")
    found = diagnose(wrong, catalog(wrong), key_ids=["k1"])
    (step,) = [step for step in found.steps if step.name == PARQUET]
    assert step.status.value == "failed"
    assert "which does nothing now" in step.detail


def test_key_files_that_would_stay_behind(own: SparkSession, tmp_path: Path) -> None:
    """Spark moves files by themselves into partitions that are elsewhere than their table."""
    name = f"spark_catalog.default.t_{uuid.uuid4().hex}"
    beside = ParquetKeys(uniform="k1", key_material_beside=True).options()
    options = ", ".join(f"'{option}' '{value}'" for option, value in beside.items())
    own.sql(
        f"CREATE TABLE {name} (id INT, p INT) USING parquet OPTIONS ({options}) PARTITIONED BY (p)"
        f" LOCATION '{tmp_path}/t'"
    )
    own.sql(f"ALTER TABLE {name} ADD PARTITION (p=1) LOCATION '{tmp_path}/elsewhere'")
    for statement in ("INSERT OVERWRITE {} PARTITION (p=1) SELECT 2", "INSERT INTO {} SELECT 2, 2"):
        with (
            untouched(tmp_path),
            pytest.raises(NotSupportedError, match=r"table .*Spark's commit .* key files"),
            typed_errors(),
        ):
            own.sql(statement.format(name))
    own.sql(f"INSERT INTO {name} PARTITION (p=2) SELECT 3")
    assert own.table(name).first() == (3, 2)
    own.sql(f"DROP TABLE {name}")


def test_keys_are_rotated(
    own: SparkSession, people: DataFrame, world: World, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    beside = ParquetKeys(footer="k1", columns={"ssn": "k2"}, key_material_beside=True)
    people.withColumn("_p", fn.col("id") % 2).write.partitionBy("_p").options(
        **beside.options()
    ).parquet(str(folder))
    material = sorted(folder.rglob("_KEY_MATERIAL_FOR_*"))
    before = [one.read_text() for one in material]
    data = [one.read_bytes() for one in files(folder)]
    done = rotate_parquet_keys(own, str(folder))
    assert (done.files, done.folders, done.restored) == (len(data), 2, 0)
    assert not set(before) & {one.read_text() for one in material}
    assert data == [one.read_bytes() for one in files(folder)]
    assert own.read.parquet(str(folder)).filter(f"ssn = '{MARKER}'").count() == 20
    # killed between the two steps of Parquet's tool
    material[0].rename(material[0].with_name("_TMP" + material[0].name))
    assert rotate_parquet_keys(own, str(folder)).restored == 1
    assert own.read.parquet(str(folder)).count() == 20
    people.write.parquet(f"{tmp_path}/inside")
    with pytest.raises(NotSupportedError, match="wrapped keys in the file itself"):
        rotate_parquet_keys(own, f"{tmp_path}/inside")
    (folder / "_delta_log").mkdir()
    with pytest.raises(NotSupportedError, match="of a Delta table"):
        rotate_parquet_keys(own, str(folder))
