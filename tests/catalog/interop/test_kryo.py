"""Spark's KryoSerializer and executors that are JVMs of their own: all that runs on executors, in one cluster."""

from pathlib import Path
from typing import Any

import pytest
from harness.classes import SPARK_CATALOG
from harness.life import MODE
from harness.programs import outcome as step
from harness.programs import seen_by
from harness.world import World, catalog_conf
from servers.cluster import cluster_conf, spark_home

pytestmark = pytest.mark.nightly

ROWS = [*range(40)]
CHANGED = sorted({*ROWS, 100, 200} - {3, 23, 4, 5})
DELETES = ["deletion vector"] if MODE == "merge-on-read" else []
KINDS = ["data", *DELETES, "manifest", "manifest list"]
STATISTICS = ["partition statistics", "statistics"]


@pytest.fixture(scope="module")
def seen(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("kryo")
    catalog = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{folder}/catalog.db",
        "jdbc.schema-version": "V1",
        "warehouse": str(folder / "warehouse"),
        "cache-enabled": "false",
        "encryption.kms-type": "keystore",
        "encryption.statistics": "encrypt",
        **world.keystore_options(),
    }
    conf = {
        **cluster_conf(),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.task.maxFailures": "1",
        **catalog_conf("lake", SPARK_CATALOG, catalog),
    }
    program, home = Path(__file__).with_name("kryo_program.py"), spark_home(folder / "spark")
    return seen_by(
        program, folder, {"SPARK_HOME": str(home)}, conf=conf, folder=str(folder), mode=MODE
    )


def test_writes_and_reads(seen: dict[str, Any]) -> None:
    assert step(seen, "write") == ROWS
    assert step(seen, "change") == CHANGED
    assert step(seen, "avro") == step(seen, "stream") == [*range(20)]


def test_metadata_tables(seen: dict[str, Any]) -> None:
    tables = step(seen, "metadata_tables")
    assert tables["keys"] == [None]
    empty = {name for name, count in tables["counts"].items() if not count}
    assert empty == (set() if DELETES else {"delete_files", "position_deletes"})


def test_procedures(seen: dict[str, Any]) -> None:
    assert step(seen, "statistics") == CHANGED
    assert step(seen, "compact") == CHANGED
    if DELETES:
        assert step(seen, "manifests") == CHANGED
    else:  # Iceberg 1.11 writes manifests on such executors without encryption
        assert "would be written without encryption" in step(seen, "manifests")["refused"]
        assert step(seen, "manifests")["ids"] == CHANGED
    assert step(seen, "expire")["ids"] == CHANGED
    assert step(seen, "expire")["lists"] > 0
    assert step(seen, "orphans") == {"found": ["orphan.parquet"], "ids": CHANGED}
    assert step(seen, "purge") == []


def test_verify(seen: dict[str, Any]) -> None:
    found = step(seen, "verified")
    assert found["False"]["ok"], found
    assert found["True"]["ok"], found
    assert found["True"]["kinds"] == sorted([*KINDS, *STATISTICS, "metadata file"])
    assert found["False"]["all_told"]


def test_a_copy(seen: dict[str, Any]) -> None:
    copied = step(seen, "copied")
    assert copied["ok"], copied["report"]
    assert copied["kinds"] == sorted([*KINDS, *STATISTICS, "metadata file"])
    assert copied["ids"] == CHANGED


def test_verify_names_planted_files(seen: dict[str, Any]) -> None:
    planted = step(seen, "planted")
    assert len(planted["found"]) == 2
    for path, found in zip(planted["planted"], planted["found"], strict=True):
        assert path in found


def test_a_read_that_fails_names_the_file(seen: dict[str, Any]) -> None:
    tampered = step(seen, "tampered")
    assert "Parquet cannot decrypt it" in tampered["text"]
    assert tampered["victim"] in tampered["text"]
    assert "Table lake.db.t" in tampered["text"]


def test_verify_finds_a_forged_manifest(seen: dict[str, Any]) -> None:
    forged = step(seen, "forged_list")
    (problem,) = forged["found"]
    assert problem.startswith("manifest ")
    assert f"{forged['victim']} what it lists cannot be read: " in problem


def test_a_kms_that_fails_is_no_finding(seen: dict[str, Any]) -> None:
    failed = step(seen, "no_kms")
    assert not failed["ok"]
    assert failed["problems"]
    for problem in failed["problems"]:
        assert (problem["kind"], problem["unchecked"]) == ("manifest list", True)
        assert "keystore" in problem["problem"].lower()
    for word in (
        "Table lake.db.t: Spark's executors cannot read manifest list",
        "which the driver can",
        "Nothing was dropped",
    ):
        assert word in failed["purge"]


def test_plaintext_of_a_copy_that_fails_is_deleted(seen: dict[str, Any]) -> None:
    """But for that of a task that ended at that moment."""
    found = step(seen, "decrypted")
    assert found["files"] == 8 and found["ids"] == [*range(20)]
    assert "strays => true finds it" in found["told"]
    assert len(found["left"]) <= 1, found["left"]
