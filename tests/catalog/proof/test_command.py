"""`iceberg-crypto verify` as it is typed, for Spark's own catalog: names of two parts, with --catalog-conf."""

import json
import sys
from pathlib import Path

import pytest
from harness.lake import Lake
from harness.programs import run
from harness.world import back_up_metastore

pytestmark = [pytest.mark.nightly, pytest.mark.parametrize("lake", ["hive", "rest"], indirect=True)]


def verify(lake: Lake, folder: Path, target: str, expect: int = 0) -> str:
    """Runs it; gives its output, standard error included."""
    conf = lake.world.session_conf(back_up_metastore(lake.spark, lake.world, folder))
    words = []
    for key, value in conf.items():
        if not key.startswith("spark.sql.catalog."):
            words += ["--conf", f"{key}={value}"]
    for key, value in lake.world.ours(lake.kind).items():
        words += ["--catalog-conf", f"{key}={value}"]
    command = [Path(sys.executable).with_name("iceberg-crypto"), "verify", target, *words]
    shell = ["bash", "-c", 'exec "$@" 2>&1', "-"]
    return run([*shell, *command, "--output", "json"], folder, expect=expect)


def test_a_table(lake: Lake, tmp_path: Path) -> None:
    lake.insert(lake.create(), [1])
    said = verify(lake, tmp_path, f"{lake.namespace}.t")
    found = json.loads(said[said.index("{") :])
    assert found["table"] == f"spark_catalog.{lake.namespace}.t"
    assert found["ok"], found
    assert found["file_count"] == 3


def test_what_is_a_namespace_too(lake: Lake, tmp_path: Path) -> None:
    """The namespace's tables do not pass for the table."""
    if lake.kind == "hive":
        name = f"t_{lake.namespace}"
        lake.sql(f"CREATE NAMESPACE {lake.catalog}.{name}")
    else:
        name = lake.namespace
    lake.insert(lake.create(name), [1])
    target = f"{lake.namespace}.{name}"
    said = verify(lake, tmp_path, target, expect=2)
    assert f"{target} is both a namespace of catalog {lake.namespace} and a table" in said
    assert f"hint: give spark_catalog.{target} for the table" in said


def test_nothing_of_that_name(lake: Lake, tmp_path: Path) -> None:
    target = f"{lake.namespace}.absent"
    said = verify(lake, tmp_path, target, expect=2)
    assert f"{target} is neither a namespace of catalog {lake.namespace} nor a table" in said
