"""configure_spark adds to what Spark is started with, and loses nothing that was set."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from doubles.in_process import DoubleKms
from harness.programs import run
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import (
    ConfigurationError,
    GcpKms,
    JarMissingError,
    OrcKeys,
    ParquetKeys,
    SparkConnectError,
    configure_spark,
    settings,
    spark_conf,
)
from pyspark_iceberg_crypto.jvm import _jvm, artifacts
from pyspark_iceberg_crypto.kms import Kms

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
EXTENSION = artifacts.ICEBERG_EXTENSION
OURS = "io.icebergcrypto:iceberg-crypto-spark-4.1_2.13:0.1.0"


@pytest.fixture(autouse=True)
def jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The wheel's jar; and a Spark without a spark-defaults.conf."""
    made = tmp_path / "iceberg-crypto-spark-4.1_2.13-0.1.0.jar"
    monkeypatch.setattr(settings, "jar_path", lambda: made)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    return str(made)


def jars(options: dict[str, str]) -> str:
    """What --jars says; the builder's spark.jars would keep the jars of packages from the executors."""
    assert "spark.jars" not in options
    words = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
    assert words[-1] == "pyspark-shell"
    return words[words.index("--jars") + 1]


def defaults(text: str) -> None:
    folder = Path(os.environ["SPARK_CONF_DIR"])
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(text)


def configured(kms: Kms | None = None, **settings: str) -> dict[str, str]:
    builder = SparkSession.builder
    for key, value in settings.items():
        builder.config(key.replace("_", "."), value)
    return configure_spark(builder, kms=kms)._options


def test_a_bare_builder_gets_jar_iceberg_and_extension(jar: str) -> None:
    options = configured()
    assert jars(options) == jar
    assert options["spark.jars.packages"] == ICEBERG
    assert options["spark.sql.extensions"] == EXTENSION


def test_what_the_builder_has_is_kept(jar: str) -> None:
    options = configured(
        spark_jars="/a.jar", spark_jars_packages="g:a:1,g:b:2", spark_sql_extensions="com.X"
    )
    assert jars(options) == f"/a.jar,{jar}"
    assert options["spark.jars.packages"] == f"g:a:1,g:b:2,{ICEBERG}"
    assert options["spark.sql.extensions"] == f"com.X,{EXTENSION}"


def test_twice_is_the_same_as_once() -> None:
    builder = configure_spark(SparkSession.builder)
    once = dict(builder._options)
    assert configure_spark(builder)._options == once


@pytest.mark.parametrize(
    "arguments",
    [
        "--packages g:a:1 --jars /a.jar pyspark-shell",
        "--packages=g:a:1 --jars=/a.jar pyspark-shell",
        "--conf spark.jars.packages=g:a:1 -c spark.jars=/a.jar pyspark-shell",
        "--packages g:zero:0 --packages g:a:1 --conf spark.jars=/a.jar pyspark-shell",
    ],
)
def test_submit_arguments_are_added_to(
    arguments: str, jar: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--master 'local[1]' {arguments}")
    configured(spark_jars_packages="g:b:2")
    words = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
    assert words.count("--packages") == words.count("--jars") == 1
    assert words[words.index("--packages") + 1] == f"g:a:1,g:b:2,{ICEBERG}"
    assert words[words.index("--jars") + 1] == f"/a.jar,{jar}"
    assert words[-3:] == ["--master", "local[1]", "pyspark-shell"]
    assert "--conf" not in words and "-c" not in words


def test_submit_arguments_that_name_no_jars_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = "--conf spark.executor.memory=1g --name 'two words' pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    assert configured()["spark.jars.packages"] == ICEBERG
    assert os.environ["PYSPARK_SUBMIT_ARGS"].endswith(arguments)


def test_an_extension_in_the_submit_arguments_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.sql.extensions=com.X pyspark-shell")
    assert configured()["spark.sql.extensions"] == f"com.X,{EXTENSION}"


@pytest.mark.parametrize("between", [" ", "=", ":", "   ", " = "])
def test_spark_defaults_are_added_to(between: str, jar: str) -> None:
    defaults(
        f"# spark.jars /no.jar\nspark.jars.packages{between}g:a:1,\\\n   g:b:2\n"
        f"  spark.jars{between}/a.jar  \nspark.sql.extensions{between}com.X\n"
    )
    options = configured()
    assert jars(options) == f"/a.jar,{jar}"
    assert options["spark.jars.packages"] == f"g:a:1,g:b:2,{ICEBERG}"
    assert options["spark.sql.extensions"] == f"com.X,{EXTENSION}"


def test_a_properties_file_stands_for_spark_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults("spark.jars.packages g:a:1\n")
    other = tmp_path / "other.conf"
    other.write_text("spark.jars.packages g:b:2\n")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {other} pyspark-shell")
    assert configured()["spark.jars.packages"] == f"g:b:2,{ICEBERG}"


def test_what_the_builder_sets_replaces_spark_defaults_as_it_does_for_spark() -> None:
    defaults("spark.jars.packages g:a:1\n")
    options = configured(spark_jars_packages="g:b:2")
    assert options["spark.jars.packages"] == f"g:b:2,{ICEBERG}"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark_jars_packages", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.1"),
        ("spark_jars", "/lib/iceberg-spark-runtime-4.1_2.13-1.12.1.jar"),
    ],
)
def test_an_iceberg_that_the_user_names_is_not_added_twice(key: str, value: str) -> None:
    assert ICEBERG not in configured(**{key: value}).get("spark.jars.packages", "")


def test_our_coordinate_brings_our_jar_and_iceberg() -> None:
    options = configured(spark_jars_packages=OURS)
    assert options["spark.jars.packages"] == OURS
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "pyspark-shell"


BUNDLE = "org.double:double-bundle:1.0"


DOUBLE, GCP = DoubleKms("https://kms"), GcpKms()
OTHER_BUNDLE = "org.double:double-bundle:2.0"
ICEBERGS_BUNDLE = "org.apache.iceberg:iceberg-gcp-bundle:1.12.0"  # it has what Google's KMS needs


@pytest.mark.parametrize(
    ("kms", "given", "packages"),
    [
        (DOUBLE, {}, [ICEBERG, BUNDLE]),
        (DOUBLE, {"spark_jars_packages": OURS}, [OURS, BUNDLE]),
        (DOUBLE, {"spark_jars_packages": OTHER_BUNDLE}, [OTHER_BUNDLE, ICEBERG]),
        (DOUBLE, {"spark_jars": "/lib/double-bundle-2.0.jar"}, [ICEBERG]),
        (DOUBLE, {"spark_jars": "/lib/double-bundle-extras-2.0.jar"}, [ICEBERG, BUNDLE]),
        (GCP, {"spark_jars_packages": ICEBERGS_BUNDLE}, [ICEBERGS_BUNDLE, ICEBERG]),
        (GCP, {"spark_jars": "/lib/iceberg-gcp-bundle-1.12.0.jar"}, [ICEBERG]),
    ],
    ids=str,
)
def test_what_the_kms_needs_is_added_once(
    kms: Kms, given: dict[str, str], packages: list[str]
) -> None:
    assert configured(kms, **given)["spark.jars.packages"] == ",".join(packages)


def test_what_the_kms_needs_is_added_for_a_kms_type_among_the_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(settings.BY_TYPE, "double", DoubleKms)
    builder = configure_spark(SparkSession.builder, options={"encryption.kms-type": "Double"})
    assert builder._options["spark.jars.packages"] == f"{ICEBERG},{BUNDLE}"


def test_an_iceberg_for_another_spark_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"iceberg-spark-runtime-3\.5_2\.12"):
        configured(spark_jars_packages="org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0")


def test_a_connect_builder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SparkConnectError, match="server"):
        configure_spark(SparkSession.builder.remote("sc://localhost"))
    with pytest.raises(SparkConnectError, match="server") as caught:
        configured(spark_api_mode="Connect")
    assert "spark_conf(...)" in caught.value.hint
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(SparkConnectError):
        configured()


def test_under_spark_submit_jars_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(_jvm, "require_jars", lambda: None)
    monkeypatch.setattr(_jvm, "launched_conf", {"spark.sql.extensions": "com.X"}.get)
    options = configured()
    assert not {"spark.jars", "spark.jars.packages"} & options.keys()
    assert options["spark.sql.extensions"] == f"com.X,{EXTENSION}"
    assert options["spark.sql.catalog.lake"] == settings.CATALOG_CLASS


def test_a_second_session_has_nothing_of_the_first_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PySpark's JVM keeps the settings that it was started with; examples' README is followed twice for real."""
    paths = "spark.sql.catalog.default_iceberg"
    outside = {
        "spark.sql.catalog.site": settings.CATALOG_CLASS,
        paths: settings.CATALOG_CLASS,
        settings.PATHS_LIKE: "lake",
        "spark.hadoop.parquet.encryption.kek.length.bits": "128",
    }
    defaults("".join(f"{key} {value}\n" for key, value in outside.items()))
    launched = {
        **outside,
        f"{paths}.encryption.required": "true",  # of the first session
        "spark.sql.catalog.lake": settings.CATALOG_CLASS,
        "spark.sql.catalog.lake.encryption.allowed-key-ids": "hr",
        "spark.sql.catalog.spark_catalog": settings.SESSION_CATALOG_CLASS,
        "spark.sql.catalog.spark_catalog.type": "hive",
        "spark.sql.catalog.lakes": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lakes.type": "rest",
        "spark.sql.catalog.site.type": "rest",
        "spark.driver.memory": "1g",
        "spark.hadoop.orc.compress": "ZSTD",
    }
    keys = settings.column_conf(
        ParquetKeys(uniform="k", kek_length=256),
        OrcKeys(columns={"ssn": "k"}),
        {**DoubleKms("https://kms").properties(), "encryption.allowed-key-ids": "k"},
    )
    launched |= keys
    changed: dict[str, str | None] = {}
    monkeypatch.setattr(_jvm, "is_up", lambda: True)
    monkeypatch.setattr(_jvm, "require_jars", lambda: None)
    monkeypatch.setattr(_jvm, "launched_conf", launched.get)
    monkeypatch.setattr(_jvm, "all_launched", lambda: launched)
    monkeypatch.setattr(_jvm, "set_launched", changed.update)
    configured()
    site = "spark.sql.catalog.site."
    of_first = ("spark.sql.catalog.lake", "spark.sql.catalog.spark_", f"{paths}.", site, *keys)
    expected: dict[str, str | None] = {
        name: None
        for name in launched
        if name.startswith(of_first) and not name.startswith("spark.sql.catalog.lakes")
    }
    assert changed == expected | {"spark.hadoop.parquet.encryption.kek.length.bits": "128"}

    # Keys of another factory's are not this project's.
    changed.clear()
    launched["spark.hadoop.parquet.crypto.factory.class"] = "com.X"
    configured()
    assert not any(name.startswith("spark.hadoop.parquet.") for name in changed)

    # spark-submit's settings are not of a session.
    changed.clear()
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    configured()
    assert changed == {}


def test_the_metrics_plugin_is_added_to_others() -> None:
    defaults("spark.plugins com.X\n")
    options = configure_spark(SparkSession.builder, metrics=True)._options
    assert options["spark.plugins"] == f"com.X,{settings.METRICS_PLUGIN}"
    assert "spark.plugins" not in configured()
    assert spark_conf(metrics=True)["spark.plugins"] == settings.METRICS_PLUGIN
    assert "spark.plugins" not in spark_conf()


def test_spark_is_to_encrypt_its_own_files() -> None:
    name = "spark.io.encryption.enabled"
    options = configure_spark(SparkSession.builder, local_disk_encryption=True)._options
    assert options[name] == spark_conf(local_disk_encryption=True)[name] == "true"
    assert name not in configured()
    assert name not in spark_conf()


def test_a_source_tree_without_a_jar_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(settings, "__file__", str(tmp_path / "settings.py"))
    with pytest.raises(JarMissingError, match="make jar"):
        settings.jar_path()


def test_settings_for_a_spark_that_something_else_starts() -> None:
    """They are what configure_spark sets, with our coordinate in place of the jar's path."""
    options = {
        "type": "hadoop",
        "warehouse": "/w",
        "kms": DoubleKms("https://kms"),
        "require_encryption": True,
    }
    conf = spark_conf("lake", **options)
    own = ("spark.jars.packages", "spark.sql.extensions")
    assert conf.pop(own[0]) == f"{OURS},{BUNDLE}"
    assert conf.pop(own[1]) == EXTENSION
    builder = configure_spark(SparkSession.builder, "lake", **options)
    assert conf == {key: builder._options[key] for key in builder._options if key not in own}
    assert own[0] not in spark_conf("lake", **options, packages=False)


def test_settings_are_refused_as_configure_spark_refuses_them() -> None:
    with pytest.raises(ConfigurationError, match="cannot be a catalog's name"):
        spark_conf("my lake", type="hadoop")
    with pytest.raises(ConfigurationError, match="unknown catalog type"):
        spark_conf("lake", type="hadop")


WITHOUT_SPARK = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.startswith({refused}):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refused())
import pyspark_iceberg_crypto as ours
{more}
"""


@pytest.mark.parametrize(
    ("refused", "more"),
    [
        (
            ("pyspark.", "py4j"),
            "ours.jar_path, ours.spark_conf(type='rest', kms=ours.Keystore('k.p12', password_env='P'))",
        ),
        (("pyspark.core", "py4j"), "[getattr(ours, name) for name in dir(ours)]"),
    ],
)
def test_what_needs_no_spark_and_no_jvm(refused: tuple[str, str], more: str) -> None:
    """The package is imported, and keys and settings are made, without PySpark; all of it with pyspark-client."""
    run([sys.executable, "-c", WITHOUT_SPARK.format(refused=refused, more=more)], Path.cwd())


def test_commands_without_spark(tmp_path: Path) -> None:
    """Keys are managed; what needs Spark says so, in the help, too."""
    command = WITHOUT_SPARK.format(
        refused=("pyspark.", "py4j"), more="from pyspark_iceberg_crypto.cli import main; main()"
    )
    program = [sys.executable, "-c", command]
    assert "create-key" in run([*program, "kms", "--help"], tmp_path)
    told = " ".join(run([*program, "--help"], tmp_path).split())
    assert told.count("needs Spark: pip install") == 11
    assert run([*program, "verify", "lake", "--conf", "a=b"], tmp_path, expect=64) == ""


def spark_home(folder: Path, jar: str) -> str:
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / jar).touch()
    return str(folder)


@pytest.mark.parametrize(
    ("jar", "artifact", "iceberg"),
    [
        ("spark-core_2.13-4.1.4.jar", "iceberg-crypto-spark-4.1_2.13", "4.1_2.13:1.12.0"),
        ("spark-core_2.13-4.0.5.jar", "iceberg-crypto-spark-4.0_2.13", "4.0_2.13:1.11.0"),
        ("spark-core_2.12-3.5.9.jar", "iceberg-crypto-spark-3.5_2.12", "3.5_2.12:1.12.0"),
        ("spark-core_2.13-3.5.9.jar", "iceberg-crypto-spark-3.5_2.13", "3.5_2.13:1.11.0"),
    ],
)
def test_the_artifact_is_that_of_the_spark_that_is_here(
    jar: str, artifact: str, iceberg: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", spark_home(tmp_path / "spark", jar))
    assert artifacts.build_for().artifact == artifact
    monkeypatch.setattr(settings, "jar_path", lambda: tmp_path)  # `make jar` makes the newest alone
    runtime = f"org.apache.iceberg:iceberg-spark-runtime-{iceberg}"
    assert configured()["spark.jars.packages"] == runtime
    assert spark_conf()["spark.jars.packages"] == f"io.icebergcrypto:{artifact}:0.1.0"
    parses_call = "-3.5_" in artifact  # Spark itself does since 4.0
    extensions = EXTENSION + ",io.icebergcrypto.spark.ProcedureExtensions" * parses_call
    assert configured()["spark.sql.extensions"] == extensions
    assert spark_conf()["spark.sql.extensions"] == extensions


def test_the_artifact_of_a_spark_that_is_named() -> None:
    conf = spark_conf(spark="4.0.1")
    assert conf["spark.jars.packages"] == "io.icebergcrypto:iceberg-crypto-spark-4.0_2.13:0.1.0"
    for spark, artifact in (
        ("3.5", "3.5_2.12"),
        ("3.5.9_2.13", "3.5_2.13"),
        ("3.5_2.12", "3.5_2.12"),
    ):
        conf = spark_conf(spark=spark)
        assert f"iceberg-crypto-spark-{artifact}:" in conf["spark.jars.packages"]
        assert "ProcedureExtensions" in conf["spark.sql.extensions"]
    with pytest.raises(ConfigurationError, match=r"Spark 4\.1 with Scala 2\.12"):
        spark_conf(spark="4.1_2.12")


@pytest.mark.parametrize(
    ("jar", "words"),
    [
        ("spark-core_2.13-3.4.4.jar", "Spark 3.4.4 with Scala 2.13"),
        ("spark-core_2.12-4.0.9.jar", "Spark 4.0.9 with Scala 2.12"),
    ],
)
def test_a_spark_without_an_artifact(
    jar: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", spark_home(tmp_path / "spark", jar))
    with pytest.raises(ConfigurationError, match=re.escape(words)) as caught:
        configured()
    assert "4.1 with Scala 2.13" in caught.value.hint
    with pytest.raises(ConfigurationError, match=r"Spark 2\.4"):
        spark_conf(spark="2.4")


def test_the_newest_artifact_where_no_spark_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert artifacts.build_for() is artifacts.BUILDS[0]


def test_our_jar_for_another_spark_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"iceberg-crypto-spark-4\.0_2\.13") as caught:
        configured(spark_jars="/lib/iceberg-crypto-spark-4.0_2.13-0.1.0.jar")
    assert OURS in caught.value.hint


def test_a_jar_that_the_package_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(settings, "__file__", str(tmp_path / "settings.py"))
    with pytest.raises(JarMissingError, match=r"no jar for Spark 4\.0") as caught:
        settings.jar_path(spark="4.0")
    assert "make jars" in caught.value.hint
