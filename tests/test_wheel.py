"""The wheel alone, in a clean virtual environment; and the sdist that one can be built from."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[1]
JAR = "pyspark_iceberg_crypto/jars/iceberg-crypto-spark-4.1_2.13-0.1.0.jar"

ROUND_TRIP = """
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark_iceberg_crypto import Keystore, configure_spark, inspect_file, kms_metrics, verify_table

warehouse = str(Path("warehouse").resolve())
keys = Keystore.create("keys.p12", keys=["k1"], password_env="STORE_PASSWORD")
# Its executor is a JVM of its own: the jars have to get there.
builder = SparkSession.builder.master("local-cluster[1,1,700]").config("spark.executor.memory", "700m")
builder = builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
spark = configure_spark(builder, type="hadoop", warehouse=warehouse, kms=keys).getOrCreate()
keys.check(spark)
spark.sql("CREATE TABLE lake.db.t (id INT, name STRING) TBLPROPERTIES ('encryption.key-id'='k1')")
spark.sql("INSERT INTO lake.db.t VALUES (1, 'one'), (2, 'two')")
assert [tuple(row) for row in spark.table("lake.db.t").orderBy("id").collect()] == [(1, "one"), (2, "two")]
with verify_table(spark, "lake.db.t") as report:
    assert report.ok, report
    path = report.files.where("kind = 'data'").first()["path"]
assert inspect_file(spark, path).magic == "PARE"
assert kms_metrics(spark).wrap_calls >= 1
# A second cell of a notebook: the same settings on the session that runs.
assert configure_spark(SparkSession.builder, type="hadoop", warehouse=warehouse, kms=keys).getOrCreate() is spark
print("round trip done")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with wheel and sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", str(folder), cwd=ROOT)
    return folder


def run(*command: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    clean["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # short-lived JVMs
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**clean, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_sdist_holds_what_the_jar_is_built_from(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "build.gradle",
        "gradle.properties",
        "settings.gradle",
        "jvm/test-servers.gradle",
        "jvm/core/build.gradle",
        "jvm/columns/src/main/java/io/icebergcrypto/parquet/package-info.java",
        "jvm/spark/module.gradle",
        "jvm/spark/v4.1/build.gradle",
        "jvm/spark/v4.0/build.gradle",
        "jvm/spark/v3.5_2.12/build.gradle",
        "jvm/spark/v3.5_2.13/build.gradle",
        "hatch_build.py",
        "LICENSE",
        "pyproject.toml",
    } <= names
    assert "jvm/spark/common/src/main/java/io/icebergcrypto/python/PythonApi.java" in names
    for version in ("1.11", "1.12"):
        folder = f"jvm/core/iceberg-{version}/src/main/java/io/icebergcrypto"
        assert f"{folder}/catalog/DecoratedTable.java" in names
    assert not [name for name in names if name.endswith((".jar", ".class"))]


def test_the_wheel_holds_package_jar_and_types(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {JAR, "pyspark_iceberg_crypto/py.typed"} <= names
    assert "pyspark_iceberg_crypto/jvm/log4j2-quiet.properties" in names
    assert "pyspark_iceberg_crypto/schemas/verify-report-1.json" in names
    assert {
        f"pyspark_iceberg_crypto/evidence/{name}" for name in ("page.html.j2", "style.css")
    } <= names
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"pyspark_iceberg_crypto", "pyspark_iceberg_crypto-0.1.0.dist-info"}


def test_the_wheel_works_in_a_clean_environment(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    commands = tmp_path / "venv" / "bin"
    run(str(commands / "pip"), "install", "-q", "--no-compile", f"{wheel}[spark]", cwd=tmp_path)
    password = {"STORE_PASSWORD": "only-for-tests"}
    (spark,) = (tmp_path / "venv").glob("lib/python*/site-packages/pyspark")
    at_home = {**password, "SPARK_HOME": str(spark)}
    said = run(str(commands / "python"), "-c", ROUND_TRIP, cwd=tmp_path, env=at_home)
    assert "round trip done" in said

    catalog = (
        "type=hadoop",
        f"warehouse={tmp_path}/warehouse",
        "encryption.kms-type=keystore",
        f"encryption.kms.keystore.path={tmp_path}/keys.p12",
        "encryption.kms.keystore.password-env=STORE_PASSWORD",
    )
    options = [word for setting in catalog for word in ("--catalog-conf", setting)]
    command = str(commands / "iceberg-crypto")
    files = ("--html", "report.html", "--json-file", "report.json", "--sign-with", "k1")
    verified = run(command, "verify", "lake.db.t", *files, *options, cwd=tmp_path, env=password)
    assert "of lake.db.t are encrypted" in verified
    assert "Verification of lake.db.t" in (tmp_path / "report.html").read_text()
    checked = run(command, "report", "check", "report.json", *options, cwd=tmp_path, env=password)
    assert "genuine: signed with master key 'k1'" in checked
    data_file = next((tmp_path / "warehouse").rglob("*.parquet"))
    inspected = run(command, "inspect", str(data_file), "--output", "json", cwd=tmp_path)
    assert inspected.startswith("{") and '"magic": "PARE"' in inspected
