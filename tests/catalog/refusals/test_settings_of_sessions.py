"""Sessions that others have in a driver, as with Spark Connect, cannot send its credentials to addresses of theirs."""

import base64
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.listener import Listener
from harness.classes import IMPLEMENTATIONS, SPARK_CATALOG
from harness.files import secret_file
from harness.refused import refused
from harness.world import World, catalog_conf
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from pyspark_iceberg_crypto import (
    ConfigurationError,
    Keystore,
    configure_spark,
    typed_errors,
    verify_folder,
)

FROM = "spark.iceberg-crypto.settings-from"
TOKEN = "hvs.of-the-server"
OURS = "spark.sql.catalog.enc_jdbc"

Start = Callable[[str], None]


@pytest.fixture
def start(spark: SparkSession) -> Iterator[Start]:
    """Has the driver as if it had been started with the setting."""
    jvm: Any = spark._jvm
    conf = jvm.org.apache.spark.SparkEnv.get().conf()
    before = conf.get(FROM)
    yield lambda value: conf.set(FROM, value)
    conf.set(FROM, before)


@pytest.fixture
def clerk(spark: SparkSession, start: Start) -> SparkSession:
    """A session as Spark's Thrift server and Spark Connect give them; by default they may set up no KMS."""
    start("application")
    return spark.newSession()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener().start()
    yield made
    made.stop()


@pytest.fixture
def vault(listener: Listener, tmp_path: Path) -> dict[str, str]:
    """The server's own login, at someone's address."""
    token = secret_file(tmp_path / "token", TOKEN)
    return {
        "encryption.kms.vault.address": listener.url,
        "encryption.kms.vault.token-file": str(token),
        "encryption.kms.retry.max-attempts": "1",
    }


def set_all(session: SparkSession, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        session.sql(f"SET `{name}`=`{value}`")


def create(session: SparkSession, catalog: str) -> None:
    key = "TBLPROPERTIES ('encryption.key-id'='k1')"
    with typed_errors():
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.ns_sessions")
        session.sql(f"CREATE TABLE {catalog}.ns_sessions.t (id INT) USING iceberg {key}")


def test_a_catalog_of_their_own(
    clerk: SparkSession,
    start: Start,
    world: World,
    vault: dict[str, str],
    listener: Listener,
) -> None:
    catalog = f"own_{uuid.uuid4().hex[:8]}"
    of_ours = {"type": "hadoop", "warehouse": str(world.root / catalog), **vault}
    of_ours["encryption.kms-type"] = "vault"
    set_all(clerk, catalog_conf(catalog, SPARK_CATALOG, of_ours))
    name = f"spark.sql.catalog.{catalog}.encryption.kms.vault.address"
    refused(ConfigurationError, lambda: create(clerk, catalog), name, FROM, secrets=(listener.url,))
    assert listener.tokens == []
    start("session")
    with pytest.raises(Exception, match="Vault at"):
        create(clerk, catalog)
    assert set(listener.tokens) == {TOKEN}, "so it would have been"


def test_a_catalog_of_iceberg_with_our_client(
    clerk: SparkSession, world: World, vault: dict[str, str], listener: Listener
) -> None:
    catalog = f"stock_{uuid.uuid4().hex[:8]}"
    options = {**world.backend("hive"), **vault, "encryption.kms-impl": IMPLEMENTATIONS["vault"]}
    set_all(clerk, catalog_conf(catalog, "org.apache.iceberg.spark.SparkCatalog", options))
    refused(
        ConfigurationError,
        lambda: create(clerk, catalog),
        "encryption.kms.vault.address",
        secrets=(listener.url,),
    )
    assert listener.tokens == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("encryption.kms.keystore.path", "/tmp/other.p12"),
        ("encryption.expose-key-metadata", "true"),
        ("encryption.plaintext-tables", "allow"),
        ("uri", "jdbc:sqlite::memory:"),
        ("io-impl", "org.apache.iceberg.io.ResolvingFileIO"),
        ("ENCRYPTION.KMS.KEYSTORE.PATH", "/tmp/other.p12"),
        ("encryption.kms-type", None),
    ],
)
def test_a_catalog_of_the_server(clerk: SparkSession, option: str, value: str | None) -> None:
    """Each option decides what is asked, where, or what is shown; so does one that is taken away."""
    if value is None:
        clerk.conf.unset(f"{OURS}.{option}")
    else:
        clerk.sql(f"SET `{OURS}.{option}`=`{value}`")
    error = refused(
        ConfigurationError, lambda: create(clerk, "enc_jdbc"), f"{OURS}.{option.lower()}"
    )
    assert value is None or value not in str(error)


def test_what_they_may(clerk: SparkSession, world: World) -> None:
    set_all(clerk, {f"{OURS}.cache-enabled": "false"})
    set_all(clerk, {f"{OURS}.table-default.write.format.default": "avro"})
    clerk.sql("SHOW NAMESPACES IN enc_jdbc").collect()
    plain = f"plain_{uuid.uuid4().hex[:8]}"
    options = {"type": "hadoop", "warehouse": str(world.root / plain)}
    set_all(clerk, catalog_conf(plain, SPARK_CATALOG, options))
    clerk.sql(f"CREATE NAMESPACE {plain}.ns")


@pytest.mark.parametrize("by", ["options", "settings"])
def test_columns_of_files(
    clerk: SparkSession, vault: dict[str, str], listener: Listener, tmp_path: Path, by: str
) -> None:
    """Spark's own Parquet files have the KMS of a session's settings, or of a write's options."""
    settings = {f"iceberg-crypto.{name}": value for name, value in vault.items()}
    settings |= {
        "iceberg-crypto.encryption.kms-type": "vault",
        "parquet.crypto.factory.class": "io.icebergcrypto.parquet.ParquetCryptoFactory",
        "parquet.encryption.uniform.key": "k1",
    }
    if by == "settings":
        set_all(clerk, settings)
        settings = {}

    def write() -> None:
        with typed_errors():
            clerk.range(1).write.options(**settings).parquet(str(tmp_path / "files"))

    refused(ConfigurationError, write, "encryption.kms.vault.address", secrets=(listener.url,))
    assert listener.tokens == []


@pytest.fixture
def keyed(spark: SparkSession, world: World, tmp_path: Path) -> str:
    """A Parquet file, all under one key, which says that Vault wrapped it."""
    options = {f"iceberg-crypto.{name}": value for name, value in world.keystore_options().items()}
    options |= {
        "iceberg-crypto.encryption.kms-type": "keystore",
        "parquet.crypto.factory.class": "io.icebergcrypto.parquet.ParquetCryptoFactory",
        "parquet.encryption.uniform.key": "k1",
        "parquet.encryption.key.material.store.internally": "false",
    }
    folder = tmp_path / "keyed"
    spark.range(1).coalesce(1).write.options(**options).parquet(str(folder))
    (beside,) = folder.glob("_KEY_MATERIAL_FOR_*.json")
    wrapped = base64.b64encode(b"vault:v1:" + base64.b64encode(bytes(64))).decode()
    found, count = re.subn(r'(wrappedKEK\\*":\\*")[^"\\]+', rf"\g<1>{wrapped}", beside.read_text())
    assert count
    beside.write_text(found)
    (folder / f".{beside.name}.crc").unlink(missing_ok=True)
    return str(folder)


def of_files(vault: dict[str, str]) -> dict[str, str]:
    """For one test alone: a client that a JVM once made stays."""
    settings = {f"iceberg-crypto.{name}": value for name, value in vault.items()}
    return settings | {
        "iceberg-crypto.encryption.kms-type": "vault",
        "iceberg-crypto.encryption.kms.vault.read-bare": "true",
        "parquet.crypto.factory.class": "io.icebergcrypto.parquet.ParquetCryptoFactory",
    }


@pytest.mark.parametrize("schema", ["given", "inferred"])
@pytest.mark.parametrize("by", ["options", "settings", "tasks"])
def test_reads_of_files(
    keyed: str,
    clerk: SparkSession,
    start: Start,
    vault: dict[str, str],
    listener: Listener,
    by: str,
    schema: str,
) -> None:
    """Spark infers a schema in tasks, before it resolves the statement; `tasks`: no extension has looked."""
    settings = of_files(vault)
    reader = clerk.read
    if schema == "given":
        reader = reader.schema("id BIGINT")
    if by == "settings":
        set_all(clerk, settings)
        settings = {}

    def read() -> None:
        with typed_errors():
            if by == "tasks":
                read_in_tasks(clerk, keyed, settings)
            else:
                reader.options(**settings).parquet(keyed).collect()

    refused(ConfigurationError, read, "encryption.kms.vault.address", secrets=(listener.url,))
    assert listener.tokens == []
    start("session")
    with pytest.raises(Exception, match="Vault at"):
        read()
    assert set(listener.tokens) == {TOKEN}, "so it would have been"


def read_in_tasks(spark: SparkSession, folder: str, settings: dict[str, str]) -> None:
    """By Hadoop's API, which no extension of Spark SQL sees."""
    spark.sparkContext.newAPIHadoopFile(
        folder,
        "org.apache.parquet.hadoop.ParquetInputFormat",
        "java.lang.Void",
        "org.apache.parquet.example.data.Group",
        conf=settings
        | {"parquet.read.support.class": "org.apache.parquet.hadoop.example.GroupReadSupport"},
    ).count()


def test_options_of_a_table(
    spark: SparkSession, start: Start, keyed: str, vault: dict[str, str], listener: Listener
) -> None:
    """Whoever created it wrote them, and the first session, too, would use them with its own login."""
    options = of_files(vault)
    listed = ", ".join(f"'{name}'='{value}'" for name, value in options.items())
    table = f"stored_{uuid.uuid4().hex[:8]}"
    start("application")
    create = f"CREATE TABLE {table} (id BIGINT) USING parquet"

    def created() -> None:
        with typed_errors():
            spark.sql(f"{create} OPTIONS ({listed}) LOCATION '{keyed}'")

    def used(statement: str) -> None:
        with typed_errors():
            spark.sql(statement).collect()

    refused(ConfigurationError, created, table, "vault.address", secrets=(listener.url,))
    spark.sql(f"{create} LOCATION '{keyed}'")
    try:
        spark.sql(f"ALTER TABLE {table} SET SERDEPROPERTIES ({listed})")
        for statement in (
            f"SELECT * FROM {table}",
            f"INSERT INTO {table} VALUES (1)",
            f"INSERT OVERWRITE {table} VALUES (1)",
        ):
            refused(
                ConfigurationError,
                lambda statement=statement: used(statement),
                table,
                "vault.address",
                secrets=(listener.url,),
            )

        def streamed() -> None:
            with typed_errors():
                spark.readStream.table(table)

        refused(ConfigurationError, streamed, table, "vault.address", secrets=(listener.url,))
    finally:
        spark.sql(f"DROP TABLE {table}")
    assert listener.tokens == []


def test_what_the_driver_tells_its_tasks(clerk: SparkSession) -> None:
    """A session's settings go along with its jobs, but not those of such names."""
    names = ["iceberg-crypto.checked-kms", "iceberg-crypto.settings-of-files"]
    set_all(clerk, dict.fromkeys([*names, "spark.clerks"], "forged"))

    def told(_: int) -> str:
        context = TaskContext.get()
        assert context is not None
        return ",".join(str(context.getLocalProperty(name)) for name in [*names, "spark.clerks"])

    row = clerk.range(1).select(udf(told)("id").alias("told")).first()
    assert row is not None
    assert row.told.endswith(",forged"), "so it would be"
    assert row.told.count("forged") == 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("parquet.encryption.uniform.key", ""),
        ("iceberg-crypto.parquet.plaintext-writes", "allow"),
        ("iceberg-crypto.encryption.kms.vault.address", "https://elsewhere"),
        ("Parquet.Encryption.footer.key", "k1"),
    ],
)
@pytest.mark.parametrize("mode", ["application", "session"])
def test_what_a_table_stores(
    spark: SparkSession, start: Start, mode: str, setting: str, value: str
) -> None:
    """Delta hands a table's own properties to Parquet, with the session's: these must be the session's."""
    jvm: Any = spark._jvm
    settings = jvm.io.icebergcrypto.spark.ServerSettings
    decides = jvm.java.util.regex.Pattern.compile("(?i)^(parquet.enc|iceberg-)").asPredicate()
    session = {"parquet.encryption.uniform.key": "k1"}
    start(mode)

    def check(found: dict[str, str]) -> None:
        with typed_errors():
            settings().checkStored("Delta", jvm.java.util.HashMap(found), decides)

    settings().tell(jvm.java.util.HashMap(session))
    check(session)
    refused(ConfigurationError, lambda: check(session | {setting: value}), "Delta", setting)
    refused(ConfigurationError, lambda: check({}), "some are not there")


def test_files_of_a_folder(
    clerk: SparkSession, vault: dict[str, str], listener: Listener, tmp_path: Path
) -> None:
    """Tasks open the footers of Parquet files with keys, and cannot tell whose settings they have."""
    clerk.range(1).write.parquet(str(tmp_path / "files"))
    settings = {f"iceberg-crypto.{name}": value for name, value in vault.items()}
    set_all(clerk, {**settings, "iceberg-crypto.encryption.kms-type": "vault"})
    refused(
        ConfigurationError,
        lambda: verify_folder(clerk, str(tmp_path / "files")),
        "encryption.kms.vault.address",
        secrets=(listener.url,),
    )
    assert listener.tokens == []


def test_the_first_session(spark: SparkSession, start: Start, world: World) -> None:
    """A notebook's; with `static` it counts no more than any other."""
    for mode in ("application", "static"):
        start(mode)
        catalog = f"first_{mode}"
        options = {"type": "hadoop", "warehouse": str(world.root / catalog)}
        options |= {"encryption.kms-type": "keystore", **world.keystore_options()}
        try:
            for name, value in catalog_conf(catalog, SPARK_CATALOG, options).items():
                spark.conf.set(name, value)
            if mode == "application":
                create(spark, catalog)
                create(spark.newSession(), "enc_jdbc")
            else:
                refused(ConfigurationError, lambda: create(spark, "first_static"), FROM)
        finally:
            for name in catalog_conf(catalog, SPARK_CATALOG, options):
                spark.conf.unset(name)


def test_options_of_the_first_session(
    spark: SparkSession, start: Start, world: World, tmp_path: Path
) -> None:
    """A KMS that no setting names: what this session asks for counts as its own."""
    keystore = shutil.copy2(world.keystore.path, tmp_path / "other.p12")
    kms = world.keystore_options() | {"encryption.kms.keystore.path": str(keystore)}
    options = {f"iceberg-crypto.{name}": value for name, value in kms.items()}
    options |= {
        "iceberg-crypto.encryption.kms-type": "keystore",
        "parquet.crypto.factory.class": "io.icebergcrypto.parquet.ParquetCryptoFactory",
        "parquet.encryption.uniform.key": "k1",
    }

    def write(session: SparkSession, folder: str) -> None:
        with typed_errors():
            session.range(1).write.options(**options).parquet(str(tmp_path / folder))

    start("application")
    write(spark, "first")
    assert {file.read_bytes()[:4] for file in tmp_path.glob("first/part-*")} == {b"PARE"}
    path = "encryption.kms.keystore.path"
    refused(ConfigurationError, lambda: write(spark.newSession(), "other"), path)
    start("static")
    refused(ConfigurationError, lambda: write(spark, "static"), path)


def test_a_mode_that_is_none(clerk: SparkSession, start: Start) -> None:
    start("sessions")
    refused(ConfigurationError, lambda: create(clerk, "enc_jdbc"), FROM, "sessions")


def test_a_catalog_in_use_gets_no_more_rules(spark: SparkSession, tmp_path: Path) -> None:
    """Spark has loaded it, and would never read them. In another session, it has not."""
    session, unused = spark.newSession(), spark.newSession()
    (tmp_path / "p").touch(0o600)
    (tmp_path / "p").write_text("only-for-tests")
    Keystore.create(tmp_path / "k.p12", keys=["k1"], password_file=tmp_path / "p")
    kms = Keystore(tmp_path / "k.p12", password_file=tmp_path / "p")
    lake: dict[str, Any] = {"type": "hadoop", "warehouse": str(tmp_path / "w"), "kms": kms}
    for one in (session, unused):
        configure_spark(one, "late", **lake)
    session.sql("CREATE NAMESPACE late.db")
    configure_spark(session, "late", **lake)  # the same again
    more: list[dict[str, Any]] = [
        {"require_encryption": True},
        {"allowed_key_ids": ["k1"]},
        {"options": {"table-default.encryption.key-id": "k1"}},
    ]
    for rules in more:
        with pytest.raises(ConfigurationError, match=r"runs without spark\.sql\.catalog\.late\."):
            configure_spark(session, "late", **lake, **rules)
        configure_spark(unused, "late", **lake, **rules)
    assert session.conf.get("spark.sql.catalog.late.encryption.required", None) is None
    create = "CREATE TABLE late.db.t (id INT) USING iceberg"
    unused.sql(create)
    key = unused.sql("SHOW TBLPROPERTIES late.db.t ('encryption.key-id')").collect()
    assert [row.value for row in key] == ["k1"]
