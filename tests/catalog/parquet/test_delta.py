"""Delta's tables, whose Parquet files have keys: their values are not in Delta's log."""

import re
from pathlib import Path
from typing import Any

import pytest
from harness.jars import BUILT, build_jars, our_jar
from harness.programs import outcome, seen_by

from pyspark_iceberg_crypto import Keystore

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("delta")
    iceberg = build_jars("test-jars", "iceberg-spark-*.jar")
    jars = [our_jar(), *build_jars(f"delta-{BUILT.spark}"), *iceberg]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEYSTORE_PASSWORD", "only-for-tests")
        Keystore.create(
            folder / "keys.p12", keys=["footer", "pii"], password_env="KEYSTORE_PASSWORD"
        )
        conf = {
            "spark.master": "local[2]",
            "spark.driver.host": "127.0.0.1",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.jars": ",".join(map(str, jars)),
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
            "spark.ui.enabled": "false",
        }
        program = Path(__file__).with_name("delta_program.py")
        return seen_by(program, folder, conf=conf, folder=str(folder))


def encrypted(found: dict[str, Any]) -> None:
    assert found["data"] == ["PARE"]
    assert found["marker"] == []


@pytest.mark.parametrize(
    ("step", "rows"), [("without_statistics", 30), ("by_property", 10), ("stream", 10)]
)
def test_no_value_is_in_the_log(seen: dict[str, Any], step: str, rows: int) -> None:
    found = outcome(seen, step)
    assert found["rows"] == rows
    encrypted(found)
    assert not found["ids"], "columns without keys of their own have the footer's"


def test_checkpoints_have_the_footers_key(seen: dict[str, Any]) -> None:
    """They have none of the columns, and without one Delta would read its whole log each time."""
    found = outcome(seen, "without_statistics")
    assert found["checkpoints"]
    assert set(found["checkpoints"]) == {"PARE"}
    assert found["problems"] == [["delta log", "plaintext"]]


def test_columns_without_keys_may_have_statistics(seen: dict[str, Any]) -> None:
    found = outcome(seen, "of_columns_without_keys")
    assert found["rows"] == 10
    encrypted(found)
    assert found["ids"]


def test_sql(seen: dict[str, Any]) -> None:
    rows, *files = outcome(seen, "in_sql")
    assert rows == [3, "sesame-4711"]
    for found in files:
        encrypted(found)


def test_deletion_vectors_bring_no_statistics(seen: dict[str, Any]) -> None:
    told, refused, deleted, left = outcome(seen, "deletion_vectors")
    assert "Delta reads the smallest and largest values" in told
    assert (refused, deleted) == (10, 9)
    for found in left:
        encrypted(found)
        assert not found["ids"]


@pytest.mark.parametrize(
    ("what", "told"),
    {
        "default": "PlaintextFoundError: .*values of columns with keys into its log, in plaintext",
        "overwrite": "PlaintextFoundError: .*values of columns with keys into its log",
        "sql": "PlaintextFoundError: .*values of columns with keys into its log",
        "keyed": r"PlaintextFoundError: .*values of columns with keys \(ssn\) into its log",
        "footers": r"PlaintextFoundError: .*values of columns with keys \(id\) into its log",
        "session": "ConfigurationError: .*sets delta.dataSkippingNumIndexedCols, which Delta reads",
        "option": "ConfigurationError: .*set parquet.encryption.column.keys, which do nothing",
        "OPTION": "ConfigurationError: .*set (?i:PARQUET.ENCRYPTION.COLUMN.KEYS), which do nothing",
        "stream": ".*values of columns with keys into its log",
        "mapped": "PlaintextFoundError: .*is partitioned by a column with a key",
        # before 4.4, Delta leaves such columns out of its files
        "partition": ".*(Values of column 'ssn', which has key 'pii'|'ssn', which is not in the file)",
        "noted": "NotSupportedError: Column 'id' of a Delta table has metadata ml_attr",
        "noted sql": "NotSupportedError: Column 'id' of a Delta table has metadata ml_attr",
        "noted stream": ".*Column 'id' of a Delta table has metadata ml_attr",
        "beside": "NotSupportedError: Save.*: Delta neither moves nor cleans key files",
        "beside in tasks": ".*part-.*: Delta neither moves nor cleans key files",
        "convert": "PlaintextFoundError: .*would read the smallest and largest values",
    }.items(),
)
def test_refused(seen: dict[str, Any], what: str, told: str) -> None:
    assert re.match(told, outcome(seen, "refused")[what], re.DOTALL), seen["refused"][what]


def test_a_refusal_leaves_nothing_and_loses_nothing(seen: dict[str, Any]) -> None:
    assert outcome(seen, "left") == []
    assert outcome(seen, "kept") == 30


@pytest.mark.parametrize("what", ["off", "elsewhere", "factory", "statistics"])
def test_what_the_log_says_of_keys(seen: dict[str, Any], what: str) -> None:
    """Whoever can write into the log could otherwise switch encryption off, or have tokens sent."""
    told, files, tokens = outcome(seen, "stored")[what]
    past = told.pop("tasks", None)
    for statement, error in told.items():
        assert "would replace settings of this session" in error, (statement, error)
    assert past is None or "Delta is about to write a file with settings other than" in past
    encrypted(files)
    assert tokens == []


def test_what_the_log_says_of_reads(seen: dict[str, Any]) -> None:
    read = outcome(seen, "stored")["read"]
    assert re.match("ConfigurationError: .*would replace .*vault.address", read, re.DOTALL), read


def test_what_a_view_says(seen: dict[str, Any]) -> None:
    told = outcome(seen, "stored")["view"]
    if told is None:
        pytest.skip("a view's text has no options before Spark 4")
    for view, error in zip(("seen", "of_table"), told, strict=True):
        assert re.match(f"ConfigurationError: .*{view} has options .*vault.address", error), error


def test_a_table_is_mended_and_not_made_so_again(seen: dict[str, Any]) -> None:
    found = outcome(seen, "stored")
    rows, files = found["mended"]
    assert rows == 20
    encrypted(files)
    for statement in ("created", "set"):
        assert "would replace settings of this session" in found[statement], found[statement]
