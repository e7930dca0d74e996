"""A table's whole life on each catalog, with Spark as users have it: compiled code, compression, local files."""

from pathlib import Path
from typing import Any

import pytest
from harness.jars import build_jars
from harness.programs import outcome, seen_by
from harness.world import KINDS, OURS, UNCOMPRESSED, World, catalog_conf, embedded_metastore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen(
    request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """One process for all: a Spark takes longer to start than a life takes."""
    folder = tmp_path_factory.mktemp("defaults")
    chosen = [item.name for item in request.session.items if item.path == request.path]
    kinds = [kind for kind in KINDS if f"test_a_tables_life[{kind}]" in chosen]
    conf = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",  # as anyone with rows so few
        "spark.driver.host": "127.0.0.1",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.jars": ",".join(
            map(str, [world.jar, *build_jars("test-jars", "iceberg-spark-runtime-*.jar")])
        ),
        "spark.driver.extraClassPath": str(build_jars("test-jars", "sqlite-jdbc-*.jar")[0]),
        **embedded_metastore(folder / "metastore"),
    }
    folders = {}
    for kind in kinds or ["jdbc"]:
        options = {k: v for k, v in world.ours(kind).items() if k not in UNCOMPRESSED}
        options["warehouse"] = str(folder / kind)
        if kind == "jdbc":
            options["uri"] = f"jdbc:sqlite:{folder}/catalog.db"
        conf |= catalog_conf(kind, OURS, options)
        # a REST server keeps its tables where it was told to
        below = world.warehouse(kind) if kind == "rest" else folder / kind
        folders[kind] = str(below / ("life.db" if kind == "hive" else "life"))
    lives = folders if kinds else {}
    return seen_by(
        Path(__file__).with_name("defaults_program.py"),
        folder,
        {"JAVA_TOOL_OPTIONS": ""},
        timeout=1200,
        conf=conf,
        folders=lives,
        catalog=next(iter(folders)),
    )


@pytest.mark.since("Spark 4.1 fills columns that INSERT does not name", spark="4.1")
@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_a_tables_life(seen: dict[str, Any], kind: str) -> None:
    assert outcome(seen, kind) is None


@pytest.mark.nightly
def test_nothing_is_set_otherwise(seen: dict[str, Any]) -> None:
    assert seen["defaults"] == {
        "factory": "FALLBACK",
        "whole stage": "true",
        "compiled": True,
        "files": None,
        "options": [],
        "codec": "zstd",
    }
