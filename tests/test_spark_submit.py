"""The artifact from a Maven repository: `spark-sql --packages` and `spark-submit --packages`."""

from pathlib import Path

import pytest
from harness.classes import SPARK_CATALOG
from harness.jars import ROOT, SPARK_JARS, build_jars, our_jar
from harness.programs import run

from pyspark_iceberg_crypto import Keystore

pytestmark = pytest.mark.slow

COORDINATE = "io.icebergcrypto:iceberg-crypto-spark-4.1_2.13:0.1.0"
EXTENSION = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

SQL = """
CREATE TABLE lake.db.t (id INT, name STRING) TBLPROPERTIES ('encryption.key-id'='k1');
INSERT INTO lake.db.t VALUES (1, 'one'), (2, 'two');
DELETE FROM lake.db.t WHERE id = 1;
ALTER TABLE lake.db.t ADD PARTITION FIELD bucket(4, id);
SELECT concat('row ', id, ' ', name) FROM lake.db.t;
"""

JOB = """
import sys
from pyspark.sql import SparkSession
from pyspark_iceberg_crypto import Keystore, configure_spark, verify_table

keys = Keystore("keys.p12", password_env="STORE_PASSWORD")
builder = configure_spark(SparkSession.builder, type="hadoop", warehouse="warehouse", kms=keys)
assert "spark.jars" not in builder._options and "spark.jars.packages" not in builder._options
spark = builder.getOrCreate()
assert spark.conf.get("spark.sql.extensions") == "EXTENSION"
spark.sql("CREATE TABLE lake.db.t (id INT) TBLPROPERTIES ('encryption.key-id'='k1')")
spark.sql("INSERT INTO lake.db.t VALUES (41), (42)")
spark.sql("DELETE FROM lake.db.t WHERE id = 41")
with verify_table(spark, "lake.db.t") as report:
    print(report)
    print("found", report.ok, [row.id for row in spark.table("lake.db.t").collect()])
spark.stop()
""".replace("EXTENSION", EXTENSION)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Maven repository with nothing but our artifact for this Spark."""
    folder = tmp_path_factory.mktemp("m2")
    task = f":{COORDINATE.split(':')[1]}:publishToMavenLocal"
    run(["gradle", "--no-daemon", "-q", task, f"-Dmaven.repo.local={folder}"], ROOT, timeout=600)
    return folder


@pytest.fixture(scope="module")
def packages(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The arguments that bring the artifact, through an Ivy folder of our own: Ivy's usual one may hold
    an older jar of this version.
    """
    return [
        *("--packages", COORDINATE),
        *("--conf", f"spark.jars.repositories={repository.as_uri()}"),
        *("--conf", f"spark.jars.ivy={tmp_path_factory.mktemp('ivy')}"),
        *("--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.driver.host=127.0.0.1"),
        *("--master", "local[1]"),
    ]


def spark(program: str, *arguments: str, cwd: Path) -> str:
    command = [SPARK_JARS.parent / "bin" / program, *arguments]
    return run(command, cwd, {"STORE_PASSWORD": "only-for-tests"})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STORE_PASSWORD", "only-for-tests")
    Keystore.create(tmp_path / "keys.p12", keys=["k1"], password_env="STORE_PASSWORD")
    return tmp_path


def data_files(place: Path) -> list[bytes]:
    """The first bytes of each data file."""
    found = [path.read_bytes()[:4] for path in (place / "warehouse").rglob("*.parquet")]
    assert found
    return found


@pytest.mark.nightly
def test_spark_sql(place: Path, packages: list[str]) -> None:
    script = place / "script.sql"
    script.write_text(SQL)
    settings = {
        "spark.sql.extensions": EXTENSION,
        "spark.sql.catalog.lake": SPARK_CATALOG,
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(place / "warehouse"),
        "spark.sql.catalog.lake.encryption.kms-type": "keystore",
        "spark.sql.catalog.lake.encryption.kms.keystore.path": str(place / "keys.p12"),
        "spark.sql.catalog.lake.encryption.kms.keystore.password-env": "STORE_PASSWORD",
    }
    conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    said = spark("spark-sql", *packages, *conf, "-S", "-f", str(script), cwd=place)
    assert "row 2 two" in said.splitlines()
    assert set(data_files(place)) == {b"PARE"}


@pytest.mark.nightly
def test_spark_submit(place: Path, packages: list[str]) -> None:
    job = place / "job.py"
    job.write_text(JOB)
    said = spark("spark-submit", *packages, str(job), cwd=place)
    assert "found True [42]" in said
    assert set(data_files(place)) == {b"PARE"}


CONFIGURED = """
from pyspark.sql import SparkSession
from pyspark_iceberg_crypto import Keystore, configure_spark

keys = Keystore("keys.p12", password_env="STORE_PASSWORD")
found = configure_spark(SparkSession.builder, type="rest", kms=keys, metrics=True)._options
print(found["spark.plugins"], [name for name in found if "default_iceberg" in name])
"""


def test_what_spark_submit_was_told_stays(tmp_path: Path) -> None:
    """By --conf, or in a file that Python does not read. No session starts."""
    (tmp_path / "job.py").write_text(CONFIGURED)
    (tmp_path / "lake.conf").write_text("spark.sql.catalog.lake.uri http://127.0.0.1:1\n")
    iceberg = build_jars("test-jars", "iceberg-spark-runtime-*.jar")
    arguments = [
        *("--properties-file", "lake.conf"),
        *("--jars", ",".join(map(str, [our_jar(), *iceberg]))),
        *("--conf", "spark.plugins=com.X", "--conf", "spark.sql.catalog.default_iceberg=com.Mine"),
    ]
    said = spark("spark-submit", *arguments, "job.py", cwd=tmp_path)
    assert said.split("\n")[-2] == "com.X,io.icebergcrypto.spark.MetricsPlugin []"
