"""Spark's own ORC files with keys for their columns."""

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
    IcebergCryptoError,
    NotSupportedError,
    OrcKeys,
    PlaintextFoundError,
    inspect_file,
    typed_errors,
    verify_folder,
)
from pyspark_iceberg_crypto.cli import main
from pyspark_iceberg_crypto.doctor import diagnose
from pyspark_iceberg_crypto.doctor._session import ORC, DoctorStep

KEYS = OrcKeys(
    columns={"ssn": "k1", "address.street": "k2", "tags": "k2"},
    masks={"ssn": "redact", "address.street": "sha256"},
)
NO_KEYS = OrcKeys(plaintext_writes=True)


def session(spark: SparkSession, world: World, keys: OrcKeys = KEYS, *allowed: str) -> SparkSession:
    return keyed_session(
        spark,
        world.keystore.kms(),
        world.root / "orc",
        allowed_key_ids=allowed or None,
        orc_columns=keys,
    )


@pytest.fixture(scope="module")
def own(spark: SparkSession, world: World) -> SparkSession:
    return session(spark, world)


@pytest.fixture(scope="module")
def people(own: SparkSession) -> DataFrame:
    return rows(own)


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("part-*.orc"))


def test_columns_are_encrypted_read_again_and_masked(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    """By who has all keys, one of them, or none, with Spark's vectorized reader and without it."""
    people.write.option("compression", "none").orc(f"{tmp_path}/t")
    for file in files(tmp_path):
        data = file.read_bytes()
        assert b"Ulm" in data  # has no key
        assert MARKER.encode() not in data  # nor in statistics
    again = own.read.orc(f"{tmp_path}/t")
    where = f"ssn = '{MARKER}' AND address.street = '{MARKER}' AND tags[0] = '{MARKER}'"
    assert again.filter(where).count() == 20
    assert again.agg(fn.sum("id")).first()[0] == 190

    clerk = session(spark, world, KEYS, "k2")
    for vectorized in ("true", "false"):
        clerk.conf.set("spark.sql.orc.enableVectorizedReader", vectorized)
        seen = clerk.read.orc(f"{tmp_path}/t").orderBy("id").first()
        assert (seen.ssn, seen.id, seen.tags) == ("xxxxxx.9999", 0, [MARKER])
        assert (seen.address.street, seen.address.city) == (MARKER, "Ulm")
    assert clerk.read.orc(f"{tmp_path}/t").filter(f"ssn = '{MARKER}'").count() == 0
    stranger = spark.newSession().read.orc(f"{tmp_path}/t").first()
    assert (stranger.ssn, stranger.tags, stranger.address.city) == ("xxxxxx.9999", None, "Ulm")
    assert len(stranger.address.street) == 64

    strict = session(spark, world, OrcKeys(missing_keys="fail"), "k2").read.orc(f"{tmp_path}/t")
    assert strict.select("id", "tags").first().tags == [MARKER]
    with pytest.raises(AccessDeniedError, match="'k1'"), typed_errors():
        strict.select("ssn").collect()


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        (OrcKeys(columns={"snn": "k1"}).options(), ConfigurationError, "Field snn not found"),
        (OrcKeys().options(), PlaintextFoundError, "no key is named"),
        pytest.param(
            {"orc.key.provider": "memory"},
            ConfigurationError,
            "Key provider 'memory'",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            {"ORC.ENCRYPT": "k2:ssn"},
            ConfigurationError,
            "ORC.ENCRYPT of .* would do nothing",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_refused(
    own: SparkSession,
    people: DataFrame,
    tmp_path: Path,
    options: dict[str, str],
    error: type[Exception],
    told: str,
) -> None:
    """Before an overwriting statement deletes what is there; OrcKeyProviderTest has all that is refused."""
    people.limit(1).write.orc(f"{tmp_path}/t")
    with untouched(tmp_path), pytest.raises(error, match=told), typed_errors():
        people.write.options(**options).mode("overwrite").orc(f"{tmp_path}/t")


def test_hives_own_writer_is_refused(own: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    """It knows no keys, and is Spark's where spark.sql.orc.impl=hive."""
    people.limit(1).write.orc(f"{tmp_path}/t")
    before = files(tmp_path)
    own.conf.set("spark.sql.orc.impl", "hive")
    try:
        with pytest.raises(NotSupportedError, match="Hive's own writer"), typed_errors():
            people.write.mode("overwrite").orc(f"{tmp_path}/t")
    finally:
        own.conf.unset("spark.sql.orc.impl")
    assert files(tmp_path) == before


@pytest.mark.nightly
def test_another_sessions_provider_reads_nothing(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    """ORC keeps key providers by their names; by Spark's second API for sources, too. Elements of lists have masks."""
    lists = people.limit(1).select("id", fn.array(fn.lit("Ab-1"), fn.lit("Cd-22")).alias("tags"))
    keys = OrcKeys(columns={"tags": "k1"}, masks={"tags": "redact"})
    lists.coalesce(1).write.options(**keys.options()).orc(f"{tmp_path}/t")
    clerk = session(spark, world, KEYS, "k2")
    for sources in ("avro,csv,json,orc,parquet,text", ""):
        clerk.conf.set("spark.sql.sources.useV1SourceList", sources)
        seen = clerk.read.orc(f"{tmp_path}/t")
        assert seen.first().tags == ["Xx.9", "Xx.99"]
        provider = clerk.conf.get("orc.key.provider")
        clerk.conf.set("orc.key.provider", own.conf.get("orc.key.provider"))
        try:
            with (
                pytest.raises(ConfigurationError, match="different settings in this"),
                typed_errors(),
            ):
                clerk.read.orc(f"{tmp_path}/t").collect()
        finally:
            clerk.conf.set("orc.key.provider", provider)


def test_statistics_of_tables(own: SparkSession, tmp_path: Path) -> None:
    """The session's keys are for other tables, too: of this one, only the columns that it has count."""
    name = f"spark_catalog.default.t_{uuid.uuid4().hex}"
    own.sql(f"CREATE TABLE {name} (id INT, tags STRING) USING orc LOCATION '{tmp_path}/t'")
    own.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR COLUMNS id")
    for columns in ("FOR COLUMNS id, TAGS", "FOR ALL COLUMNS"):
        with pytest.raises(NotSupportedError, match=r"keys \(tags\) of table"), typed_errors():
            own.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS {columns}")
    own.sql(f"DROP TABLE {name}")


@pytest.mark.nightly
def test_a_stream_has_keys_of_the_session_alone(
    spark: SparkSession, world: World, tmp_path: Path
) -> None:
    """Spark drops the options of a stream into files, and of its table: with keys, it is refused."""
    own = session(spark, world, OrcKeys(columns={"ssn": "k1"}))
    own.sql(f"SELECT '{MARKER}' AS ssn").write.parquet(f"{tmp_path}/source")
    name = f"spark_catalog.default.t_{uuid.uuid4().hex}"
    own.sql(f"CREATE TABLE {name} (ssn STRING) USING orc OPTIONS (orc.encrypt 'k2:ssn')")

    def started(keys: OrcKeys | None, table: str | None = None) -> None:
        read = own.readStream.schema("ssn STRING").parquet(f"{tmp_path}/source")
        write = read.writeStream.format("orc").options(**keys.options() if keys else {})
        write = write.option("checkpointLocation", f"{tmp_path}/{uuid.uuid4().hex}")
        write = write.trigger(availableNow=True)
        (write.toTable(table) if table else write.start(f"{tmp_path}/t")).awaitTermination()

    for keys, table in ((OrcKeys(columns={"ssn": "k2"}), None), (None, name)):
        with pytest.raises(Exception, match=r"Spark drops .* of a stream .*orc\.encrypt"):
            started(keys, table)
    own.conf.set("Orc.Encrypt", "k1:ssn")
    with pytest.raises(Exception, match=r"ORC has no property Orc\.Encrypt"):
        started(None)
    own.conf.unset("Orc.Encrypt")
    assert files(tmp_path) == [] and own.table(name).count() == 0
    own.sql(f"DROP TABLE {name}")
    own.sql(f"CREATE TABLE {name} (ssn STRING) USING orc")
    own.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('orc.encrypt'='k2:ssn')")
    with pytest.raises(Exception, match=r"TBLPROPERTIES .* has orc\.encrypt, which would do"):
        started(None, name)
    own.sql(f"DROP TABLE {name}")
    started(OrcKeys(columns={"ssn": "k1"}))
    (file,) = files(tmp_path)
    assert MARKER.encode() not in file.read_bytes()
    assert [c.key_id for c in inspect_file(own, str(file)).columns or ()] == ["k1"]


@pytest.mark.nightly
def test_tables_of_sql(own: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    """Keys are options of the table. Spark gives nothing of TBLPROPERTIES to ORC: refused."""
    people.createOrReplaceTempView("people")
    name = f"spark_catalog.default.t_{uuid.uuid4().hex}"
    create = (
        f"CREATE TABLE {name} USING orc OPTIONS ({{}}) LOCATION '{tmp_path}/t' PARTITIONED BY (id)"
    )
    query = "AS SELECT ssn, address, id FROM people"
    with pytest.raises(ConfigurationError, match="Field snn not found"), typed_errors():
        own.sql(create.format("orc.encrypt 'k2:snn', orc.mask ''") + query)
    with pytest.raises(ConfigurationError, match="Field id not found"), typed_errors():
        own.sql(create.format("orc.encrypt 'k2:id', orc.mask ''") + query)
    own.sql(create.format("orc.encrypt 'k2:address', orc.mask ''") + query)
    own.sql(f"INSERT OVERWRITE {name} SELECT ssn, address, id + 1 FROM people")
    assert own.table(name).agg(fn.sum("id")).first()[0] == 210
    seen = inspect_file(own, str(files(tmp_path)[0]))
    assert {c.name: c.key_id for c in seen.columns or ()} == {
        "ssn": None,
        "address.street": "k2",
        "address.city": "k2",
    }
    own.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('orc.encrypt'='k1:ssn')")
    with pytest.raises(ConfigurationError, match="has orc.encrypt, which would do"), typed_errors():
        own.sql(f"INSERT INTO {name} SELECT ssn, address, id FROM people")
    own.sql(f"DROP TABLE {name}")
    properties = "USING orc TBLPROPERTIES ('orc.encrypt'='k1:ssn')"
    for what in (f"(ssn STRING) {properties}", f"{properties} AS SELECT ssn FROM people"):
        with pytest.raises(ConfigurationError, match="OPTIONS"), typed_errors():
            own.sql(f"CREATE TABLE {name} {what}")
    assert not own.catalog.tableExists(name)


@pytest.mark.nightly
def test_a_table_is_no_laxer_than_the_session(
    own: SparkSession, spark: SparkSession, world: World, tmp_path: Path
) -> None:
    """Whoever may alter a table could have plaintext written; a plaintext table is read anywhere."""
    name = f"spark_catalog.default.t_{uuid.uuid4().hex}"
    none = ", ".join(f"'{option}' '{value}'" for option, value in NO_KEYS.options().items())
    own.sql(f"CREATE TABLE {name} (ssn STRING) USING orc OPTIONS ({none}) LOCATION '{tmp_path}/t'")
    insert = f"INSERT INTO {name} VALUES ('{MARKER}')"
    with pytest.raises(PlaintextFoundError, match="no key is named"), typed_errors():
        own.sql(insert)
    session(spark, world, NO_KEYS).sql(insert)
    own.catalog.refreshTable(name)
    assert own.table(name).first().ssn == MARKER
    own.sql(f"ALTER TABLE {name} SET SERDEPROPERTIES ('orc.key.provider'='')")
    with pytest.raises(PlaintextFoundError, match="no key is named"), typed_errors():
        own.sql(insert)
    own.sql(f"ALTER TABLE {name} SET SERDEPROPERTIES ('orc.encrypt'='k1:ssn')")
    if BUILT.spark == "3.5":
        own.catalog.refreshTable(name)  # it has the earlier properties until then
    with pytest.raises(ConfigurationError, match="not known to ORC"), typed_errors():
        own.sql(insert.replace("INTO", "OVERWRITE"))  # it would delete, and then fail
    assert own.read.orc(f"{tmp_path}/t").first().ssn == MARKER
    own.sql(f"DROP TABLE {name}")


def test_settings_that_come_too_late(
    spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    people.limit(1).write.orc(f"{tmp_path}/t")
    late = session(spark, world)
    late.conf.set("spark.hadoop.orc.encrypt", "k1:id")
    told = r"spark\.hadoop\.orc\.encrypt, which does nothing now"
    rows = late.range(1)
    with untouched(tmp_path), pytest.raises(ConfigurationError, match=told), typed_errors():
        rows.write.mode("overwrite").orc(f"{tmp_path}/t")


def test_a_look_at_files(
    own: SparkSession, spark: SparkSession, world: World, people: DataFrame, tmp_path: Path
) -> None:
    """It takes no key; reading all data takes keys, and proves little."""
    people.coalesce(1).write.orc(f"{tmp_path}/t")
    (file,) = map(str, files(tmp_path))
    for seen in (inspect_file(own, file, pages=True), inspect_file(spark, file)):
        assert (seen.magic, seen.algorithm, seen.footer) == ("ORC", "AES_CTR_128", "plaintext")
        assert not seen.encrypted
        assert not seen.pages_authenticated
        assert {c.name: (c.protected_by, c.key_id, c.mask) for c in seen.columns or ()} == {
            "ssn": ("column key", "k1", "redact_any"),
            "id": ("nothing", None, None),
            "address.street": ("column key", "k2", "sha256"),
            "address.city": ("nothing", None, None),
            "tags._elem": ("column key", "k2", "nullify"),
        }
        assert "column key k1, mask redact_any" in str(seen)
    assert inspect_file(own, file, pages=True).pages_checked
    left = inspect_file(session(spark, world, KEYS, "k2"), file, pages=True)
    assert not left.pages_checked
    assert list(left.columns_left or ()) == ["ssn"]
    told = CliRunner().invoke(main, ["inspect", file, "--expect-encrypted"])
    assert told.exit_code == 1, told.output
    data = bytearray(Path(file).read_bytes())
    del data[-40:-30]
    changed = tmp_path / "changed.orc"
    changed.write_bytes(data)
    with pytest.raises(IcebergCryptoError, match=r"changed\.orc could not be checked"):
        inspect_file(spark, str(changed))


@pytest.mark.nightly
def test_folders(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    people.coalesce(1).write.orc(f"{tmp_path}/t")
    people.coalesce(1).write.options(**NO_KEYS.options()).orc(f"{tmp_path}/p")
    found = {
        Path(str(one.path)).parent.name: one for one in verify_folder(spark, str(tmp_path)).problems
    }
    assert {one.code for one in found.values()} == {"plaintext"}
    told = found["t"].problem
    assert "columns that are plaintext: id, address.city" in told
    assert "AES-CTR, which does not authenticate" in told
    assert "masked values are plaintext: ssn (redact_any), address.street (sha256)" in told
    assert "it is not encrypted: it is ORC" in found["p"].problem


@pytest.mark.nightly
def test_deep_reads_all_data(own: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    people.coalesce(1).write.orc(f"{tmp_path}/t")
    [file] = files(tmp_path)
    file.with_name(f".{file.name}.crc").unlink()  # Hadoop's, which would find it without a key
    [whole] = verify_folder(own, str(tmp_path), deep=True).problems
    assert whole.code == "plaintext"  # its footer, and columns without a key
    data = file.read_bytes()
    file.write_bytes(data[:3] + bytes(len(data) // 3) + data[3 + len(data) // 3 :])
    [read] = verify_folder(own, str(tmp_path), deep=True).problems
    assert read.code == "plaintext"
    assert "could not be checked" in read.problem, "ORC has no tag that could prove a change"
    [unread] = verify_folder(own, str(tmp_path)).problems
    assert unread.code == "plaintext"


@pytest.mark.nightly
def test_doctor(own: SparkSession, spark: SparkSession, world: World) -> None:
    def steps(of: SparkSession) -> list[DoctorStep]:
        return [step for step in diagnose(of, "enc_jdbc", key_ids=["k1"]).steps if step.name == ORC]

    (step,) = steps(own)
    assert step.status.value == "warning"
    assert "AES-CTR: changes to data are not detected" in step.detail
    assert not steps(spark)
    (step,) = steps(session(spark, world, OrcKeys(columns={"ssn": "k9"})))
    assert step.status.value == "failed"
    assert "has no key 'k9'" in step.detail
