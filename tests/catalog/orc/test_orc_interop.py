"""ORC files of ours in other programs: pyarrow, ORC's tools, Hive; and who may read them, by Vault."""

import shlex
import sys
import uuid
from pathlib import Path

import pyarrow.orc
import pytest
from harness.columns import keyed_session
from harness.files import secret_file
from harness.jars import SPARK_JARS, build_jars, our_jar
from harness.programs import run
from harness.world import World
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from servers.vault import VaultServer, start_vault

from pyspark_iceberg_crypto import (
    KmsUnavailableError,
    OrcKeys,
    Vault,
    typed_errors,
)

KEYS = OrcKeys(columns={"ssn": "k1", "address.street": "k2"}, masks={"ssn": "redact"})


@pytest.fixture(scope="module")
def own(spark: SparkSession, world: World) -> SparkSession:
    return keyed_session(spark, world.keystore.kms(), world.root / "orc", orc_columns=KEYS)


@pytest.mark.parametrize("compression", ["none", pytest.param("zstd", marks=pytest.mark.nightly)])
def test_pyarrow_reads_masks(own: SparkSession, tmp_path: Path, compression: str) -> None:
    """It knows no column encryption; the masked copies stand where it looks."""
    own.range(1000).select(
        fn.concat(fn.lit("Sesame-"), "id").alias("ssn"),
        "id",
        fn.struct(fn.lit("Hill").alias("street"), fn.lit("Ulm").alias("city")).alias("address"),
    ).coalesce(1).write.option("compression", compression).orc(f"{tmp_path}/t")
    (file,) = (tmp_path / "t").glob("part-*.orc")
    read = pyarrow.orc.ORCFile(str(file)).read()
    assert read.column("id").to_pylist() == list(range(1000))
    assert read.column("ssn").to_pylist()[777] == "Xxxxxx.999"
    assert read.column("address").to_pylist()[0] == {"street": None, "city": "Ulm"}


@pytest.mark.nightly
def test_orcs_tools(own: SparkSession, tmp_path: Path) -> None:
    """They read masks; with this project's jar and the session's settings in core-site.xml, the values."""
    own.range(3).selectExpr("'Sesame-777' AS ssn", "id").coalesce(1).write.options(
        **OrcKeys(columns={"ssn": "k1"}, masks={"ssn": "redact"}).options()
    ).orc(f"{tmp_path}/t")
    (file,) = (tmp_path / "t").glob("part-*.orc")
    (tmp_path / "core-site.xml").write_text(
        "<configuration>"
        + "".join(
            f"<property><name>{name}</name><value>{own.conf.get(name)}</value></property>"
            for name in own.conf.getAll
            if name.startswith(("iceberg-crypto.encryption.", "orc.key.provider"))
        )
        + "</configuration>"
    )
    jars = [*build_jars("orc-tools"), our_jar()]
    jars += build_jars("test-jars", "iceberg-spark-runtime-*.jar")

    def tool(command: str, *first: Path) -> str:
        path = ":".join(map(str, [*first, *jars, f"{SPARK_JARS}/*"]))
        driver = ["java", "-cp", path, "org.apache.orc.tools.Driver", command, str(file)]
        return run(driver, tmp_path)

    assert tool("data").count('{"ssn":"Xxxxxx.999","id":') == 3
    assert tool("data", tmp_path).count('{"ssn":"Sesame-777","id":') == 3
    meta = tool("meta")
    assert "encrypt: k1" in meta and "mask: redact_any" in meta and "Sesame" not in meta


@pytest.mark.nightly
def test_vault_decides_who_reads_a_column(spark: SparkSession, tmp_path: Path) -> None:
    """A login that may not use a key sees the mask; when Vault is away, nobody sees masks for values."""
    vault = start_vault(tmp_path / "log")
    try:
        for key in ("pii", "salaries"):
            vault.make_key(key)
        chief = vault_session(spark, vault, tmp_path, "pii", "salaries")
        rows = chief.createDataFrame([(1, "a", 10), (2, "b", 20)], "id long, ssn string, pay int")
        rows.write.orc(f"{tmp_path}/t")
        assert chief.read.orc(f"{tmp_path}/t").filter("ssn = 'b'").first().pay == 20
        clerk = vault_session(spark, vault, tmp_path, "salaries").read.orc(f"{tmp_path}/t")
        assert {tuple(row) for row in clerk.collect()} == {(1, None, 10), (2, None, 20)}
        vault.rotate_key("pii")  # old files need its old version, which is there
        fresh = vault_session(spark, vault, tmp_path, "pii", "salaries").read.orc(f"{tmp_path}/t")
        assert fresh.filter("ssn = 'a'").count() == 1
        late = vault_session(spark, vault, tmp_path, "pii", "salaries").read.orc(f"{tmp_path}/t")
    finally:
        vault.stop()
    assert late.select("id").count() == 2
    with pytest.raises(KmsUnavailableError), typed_errors():
        late.select("ssn").collect()
    before = sorted((tmp_path / "t").iterdir())
    away = vault_session(spark, vault, tmp_path)
    with pytest.raises(KmsUnavailableError), typed_errors():
        away.createDataFrame(rows.collect(), rows.schema).write.mode("overwrite").orc(
            f"{tmp_path}/t"
        )
    assert sorted((tmp_path / "t").iterdir()) == before


def vault_session(
    spark: SparkSession, vault: VaultServer, folder: Path, *keys: str
) -> SparkSession:
    """A session whose login may use some of Vault's keys; without any, the login of the last one."""
    token = folder / f"token-{uuid.uuid4().hex}"
    if keys:
        vault.token_login(token, vault.driver_policy(*keys))
    else:
        secret_file(token, "hvs.nobodys")
    return keyed_session(
        spark,
        Vault(vault.address, token_file=token),
        folder,
        options={"encryption.kms.retry.max-attempts": "1"},
        orc_columns=OrcKeys(columns={"ssn": "pii", "pay": "salaries"}),
    )


HIVE = r"""
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark_iceberg_crypto import ConfigurationError, Keystore, NotSupportedError, OrcKeys
from pyspark_iceberg_crypto import ParquetKeys, configure_spark, inspect_file, typed_errors

keys = Keystore.create("keys.p12", keys=["k1"], password_env="KEYSTORE_PASSWORD")
builder = SparkSession.builder.config("spark.sql.catalogImplementation", "hive")
for name, value in {
    "spark.sql.warehouse.dir": "warehouse",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName=metastore;create=true",
    "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
    "spark.hadoop.datanucleus.connectionPoolingType": "HikariCP",
    "spark.hadoop.hive.metastore.schema.verification": "false",
}.items():
    builder = builder.config(name, value)
spark = configure_spark(
    builder,
    type="hadoop",
    warehouse="lake",
    kms=keys,
    path_access=False,
    orc_columns=OrcKeys(),
    parquet_columns=ParquetKeys(),
).getOrCreate()
spark.sql("CREATE TABLE t (ssn STRING, id INT) STORED AS ORC TBLPROPERTIES ('orc.encrypt'='k1:ssn')")
spark.sql("INSERT INTO t VALUES ('sesame', 1)")
(file,) = Path("warehouse/t").glob("part-*")
columns = inspect_file(spark, str(file.absolute())).columns
assert [(c.name, c.key_id) for c in columns] == [("ssn", "k1"), ("id", None)], columns
assert spark.table("t").first().ssn == "sesame"

# Hive's own writer knows no keys.
spark.conf.set("spark.sql.hive.convertMetastoreOrc", "false")
spark.conf.set("spark.sql.hive.convertInsertingPartitionedTable", "false")
spark.conf.set("spark.sql.hive.convertInsertingUnpartitionedTable", "false")
spark.conf.set("spark.sql.hive.convertMetastoreInsertDir", "false")
Path("folder").mkdir()
Path("folder/kept").touch()
for target in ("t", f"LOCAL DIRECTORY '{Path('folder').absolute()}' STORED AS ORC"):
    try:
        with typed_errors():
            spark.sql(f"INSERT OVERWRITE {target} SELECT 'sesame' AS ssn, 2 AS id")
        sys.exit(f"{target} was not refused")
    except NotSupportedError as error:
        assert "Hive's own writer" in error.message, error
assert file.exists() and Path("folder/kept").exists()
spark.conf.set("iceberg-crypto.orc.plaintext-writes", "allow")
spark.sql("INSERT OVERWRITE t VALUES ('sesame', 2)")
(file,) = (one for one in Path("warehouse/t").rglob("part-*"))
spark.conf.set("iceberg-crypto.orc.plaintext-writes", "deny")

# Of Parquet it has the session's.
spark.conf.set("spark.sql.hive.convertInsertingUnpartitionedTable", "true")
spark.sql(
    "CREATE TABLE p (ssn STRING, id INT) STORED AS PARQUET TBLPROPERTIES ("
    "'parquet.encryption.footer.key'='k1', 'parquet.encryption.column.keys'='k1:ssn')"
)
spark.sql("INSERT INTO p VALUES ('sesame', 1)")
spark.conf.set("spark.sql.hive.convertMetastoreParquet", "false")
try:
    with typed_errors():
        spark.sql("INSERT OVERWRITE p SELECT 'sesame' AS ssn, 2 AS id")
    sys.exit("p was not refused")
except NotSupportedError as error:
    assert "of table" in error.message and "Hive's own writer" in error.message, error
(parquet,) = Path("warehouse/p").glob("part-*")
assert parquet.read_bytes().endswith(b"PARE")

# Hive moves files without those of their keys.
for name, value in ParquetKeys(uniform="k1", key_material_beside=True).options().items():
    spark.conf.set(name, value)
spark.sql("CREATE TABLE b (ssn STRING) STORED AS PARQUET")
for target in ("b", f"DIRECTORY '{Path('folder').absolute()}' STORED AS PARQUET"):
    try:
        with typed_errors():
            spark.sql(f"INSERT OVERWRITE {target} SELECT 'sesame' AS ssn")
        sys.exit(f"{target} was not refused")
    except NotSupportedError as error:
        assert "Hive's own writer neither moves" in error.message, error
assert Path("folder/kept").exists()

# Spark moves none into a table without partitions.
spark.conf.set("spark.sql.hive.convertMetastoreParquet", "true")
spark.sql("INSERT INTO b VALUES ('sesame')")
assert spark.table("b").first().ssn == "sesame"
assert list(Path("warehouse/b").glob("_KEY_MATERIAL_FOR_*"))
spark.sql("TRUNCATE TABLE b")
spark.conf.set("spark.sql.hive.convertMetastoreParquet", "false")
spark.conf.set("parquet.encryption.key.material.store.internally", "true")

# It takes no setting that nobody has set for one of the table's, nor another spelling of true.
spark.sparkContext._jsc.hadoopConfiguration().unset("iceberg-crypto.parquet.plaintext-writes")
spark.conf.unset("iceberg-crypto.parquet.plaintext-writes")
spark.conf.set("iceberg-crypto.parquet.require-integrity", "TRUE")
spark.sql("INSERT INTO b VALUES ('sesame')")
(hives,) = Path("warehouse/b").glob("part-*")
assert b"sesame" not in hives.read_bytes()

# Spark drops the options.
plain = spark.createDataFrame([("sesame",)], ["ssn"]).write.format("hive").mode("append")
try:
    with typed_errors():
        plain.options(**ParquetKeys(uniform="k1", data_key_length=256).options()).saveAsTable("b")
    sys.exit("options were not refused")
except ConfigurationError as error:
    assert "Spark drops option" in error.message, error

# The metastore would have the values that machine learning notes.
noted = spark.createDataFrame([("sesame",)], ["ssn"])
noted.withMetadata("ssn", {"ml_attr": {"vals": ["sesame"]}}).createOrReplaceTempView("noted")
try:
    with typed_errors():
        spark.sql("CREATE TABLE n STORED AS PARQUET AS SELECT * FROM noted")
    sys.exit("n was not refused")
except NotSupportedError as error:
    assert "'ssn' of table " in error.message and "ml_attr" in error.message, error
print("plaintext" if b"sesame" in file.read_bytes() else "encrypted")
spark.stop()
"""


@pytest.mark.nightly
def test_tables_of_hive(tmp_path: Path) -> None:
    """Spark writes their files with keys; Hive's own writer, which would not, is refused."""
    jars = [our_jar(), *build_jars("test-jars", "iceberg-spark-runtime-*.jar")]
    arguments = ["--master", "local[1]", "--jars", ",".join(map(str, jars)), "pyspark-shell"]
    environment = {
        "KEYSTORE_PASSWORD": "only-for-tests",
        "PYSPARK_SUBMIT_ARGS": shlex.join(arguments),
    }
    assert "plaintext" in run([sys.executable, "-c", HIVE], tmp_path, environment)
