"""Hudi's tables on Spark 3.5, whose Parquet files have keys; what stays plaintext is refused, or told."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from harness.jars import BUILT, ROOT, build_jars, our_jar
from harness.programs import outcome, run, seen_by

from pyspark_iceberg_crypto import Keystore

if BUILT.spark != "3.5":
    pytest.skip("Hudi is tested on Spark 3.5, by `make matrix`", allow_module_level=True)

HUDI = "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"
PLAINTEXT = "iceberg-crypto.hudi.plaintext=allow"
VERSIONS = ("1.0.2", "1.2.0")


def jars(version: str) -> str:
    iceberg = build_jars("test-jars", "iceberg-spark-*.jar")
    return ",".join(map(str, [our_jar(), *build_jars(f"hudi-{version}"), *iceberg]))


@pytest.fixture(scope="module", params=VERSIONS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return ran(tmp_path_factory.mktemp("hudi"), request.param)


@pytest.fixture(scope="module", params=VERSIONS)
def unchecked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """In a session without the extension that checks statements."""
    return ran(tmp_path_factory.mktemp("unchecked"), request.param, unchecked=True)


def ran(folder: Path, version: str, *, unchecked: bool = False) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEYSTORE_PASSWORD", "only-for-tests")
        Keystore.create(
            folder / "keys.p12", keys=["footer", "pii"], password_env="KEYSTORE_PASSWORD"
        )
        conf = {
            "spark.master": "local[2]",
            "spark.driver.host": "127.0.0.1",
            "spark.jars": jars(version),
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.sql.extensions": HUDI,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
            "spark.ui.enabled": "false",
        }
        program = Path(__file__).with_name("hudi_program.py")
        (folder / "conf").mkdir()
        (folder / "conf" / "hudi-defaults.conf").touch()
        defaults = {"HUDI_CONF_DIR": str(folder / "conf")}
        return seen_by(
            program, folder, defaults, conf=conf, folder=str(folder), unchecked=unchecked
        )


def encrypted(files: dict[str, list[Any]], count: int) -> None:
    assert len(files) == count, files
    assert all(found == ["PARE", False] for found in files.values()), files


def test_copy_on_write(seen: dict[str, Any]) -> None:
    found = outcome(seen, "copy_on_write")
    assert found["snapshot"] == found["read_optimized"] == {"1": 3, "2": 10}
    assert found["incremental"] == 13
    encrypted(found["files"], 3)


def test_who_lacks_a_columns_key(seen: dict[str, Any]) -> None:
    found = outcome(seen, "denied")
    assert found["ids"] == sum(range(2, 15))
    assert found["ssn"].startswith("AccessDeniedError: Column 'ssn' of ")
    assert "Master key 'pii'" in found["ssn"]


def test_verification_tells_what_each_file_is(seen: dict[str, Any]) -> None:
    for found in outcome(seen, "verified"):
        assert found["encrypted"] == {"file": 3}
        assert found["problems"] == [["hudi timeline", "plaintext"]]
        names = {path.rpartition("/")[2] for path in found["paths"]}
        assert {"hoodie.properties", ".hoodie_partition_metadata"} < names
        assert not any(name.endswith(".hfile") for name in names)
        assert not any(name.endswith(".parquet") for name in names)


def test_bulk_insert_and_clustering(seen: dict[str, Any]) -> None:
    rows, files = outcome(seen, "bulk_insert")
    assert rows == {"1": 10}
    encrypted(files, len(files) or 1)
    replaced, rows, files = outcome(seen, "clustered")
    assert (replaced, rows) == (1, {"1": 10})
    encrypted(files, 2)


def test_the_archived_timeline_has_the_footers_key(seen: dict[str, Any]) -> None:
    rows, files = outcome(seen, "archived")
    assert rows == {"6": 4}
    encrypted(files, len(files) or 1)


def test_merge_on_read(seen: dict[str, Any]) -> None:
    """Its logs are plaintext, and told so; what is compacted is encrypted again."""
    found = outcome(seen, "merge_on_read")
    assert found["snapshot"] == {"1": 5, "2": 5}
    assert found["read_optimized"] == {"1": 10}
    encrypted(found["base"], 1)
    assert list(found["logs"].values()) == [["#HUD", True]]
    assert ["hudi log", "plaintext"] in found["verified"]["problems"]
    assert "with rows or keys of records" in found["verified"]["logs"][0]
    assert found["compacted"] == {"1": 5, "3": 5}
    encrypted(found["compacted base"], 2)


def test_blocks_of_logs_in_parquet_are_encrypted(seen: dict[str, Any]) -> None:
    rows, logs, verified = outcome(seen, "parquet_in_logs")
    assert rows == {"1": 5, "2": 5}
    assert list(logs.values()) == [["#HUD", False]]
    assert ["hudi log", "plaintext"] in verified["problems"], "keys of records may be in it"


def test_column_statistics_are_plaintext(seen: dict[str, Any]) -> None:
    """Why they have to be turned off."""
    assert "sesame-4711" in outcome(seen, "statistics")


def test_each_index_has_a_kind(seen: dict[str, Any]) -> None:
    folders, problems = outcome(seen, "indexes")
    kinds = {kind for kind, _ in problems}
    assert {"column_stats", "partition_stats", "bloom_filters", "record_index"} < set(folders)
    assert {"secondary_index_of_ssn", "expr_index_hours"} < set(folders)
    assert kinds == {
        *("hudi metadata", "hudi timeline", "hudi column stats", "hudi partition stats"),
        *("hudi bloom filters", "hudi record index", "hudi secondary index"),
        "hudi expression index",
    }


def test_the_metadata_table_is_turned_off(seen: dict[str, Any]) -> None:
    told, rows, problems = outcome(seen, "turned_off")
    assert "its metadata table, in .hoodie/metadata" in told
    assert rows == {"3": 10}
    assert problems == [["hudi timeline", "plaintext"]]


def test_no_values_in_commits(seen: dict[str, Any]) -> None:
    """Hudi 1.0 writes the smallest and largest of the column ts there, if they look like times."""
    found = outcome(seen, "event_times")
    for told, column in zip(found["refused"], ("ts", "ssn", "ts"), strict=True):
        explained(told, f"PlaintextFoundError: .*largest value of column '{column}' in commits")
    assert found["rows"] == [{"1764420001": 3}, 1764420001]
    assert found["by default"] in ([1764420001], [])  # the latter from 1.1 on
    assert found["turned off"] == [[], []]


def test_sql(seen: dict[str, Any]) -> None:
    rows, files, selected = outcome(seen, "sql")
    assert rows == [[1, "sesame-4711", 2], [2, "sesame-4711", 3]]
    encrypted(files, len(files) or 1)
    encrypted(selected, len(selected) or 1)


@pytest.mark.parametrize(
    ("what", "told"),
    {
        "merge on read": "PlaintextFoundError: .*table.type=MERGE_ON_READ \\(options\\)",
        "statistics": "PlaintextFoundError: .*column statistics in a metadata table, as hoodie.meta",
        "metadata": "PlaintextFoundError: .*hoodie.metadata.enable=true \\(options\\)",
        "changes": "PlaintextFoundError: .*hoodie.table.cdc.enabled=true",
        "record index": "PlaintextFoundError: .*hoodie.metadata.record.index.enable=true",
        "orc": "PlaintextFoundError: .*hoodie.table.base.file.format=ORC",
        "alias": "PlaintextFoundError: .*hoodie.table.ro.file.format=ORC",
        "unknown": "PlaintextFoundError: .*hoodie.of.a.later.version=1",
        "key generator": "PlaintextFoundError: .*keygenerator.class=com.acme.Keys",
        "session's": "PlaintextFoundError: .*hoodie.metadata.enable=true \\(this session\\)",
        "spark's": "PlaintextFoundError: .*hoodie.metadata.enable=true \\(this session\\)",
        "hadoop's": "PlaintextFoundError: .*metadata.enable=true \\(SparkContext's Hadoop conf",
        "defaults": "PlaintextFoundError: .*metadata.enable=true \\(hudi-defaults.conf\\)",
        "stream": "PlaintextFoundError: Hudi table of a stream",
        "record key": "PlaintextFoundError: .*values of record key 'ssn', which has key 'pii', in foot",
        "partition": "PlaintextFoundError: .*'ssn', in names of folders",
        "partitionBy": "PlaintextFoundError: .*'ssn', in names of folders",
        "column": "ConfigurationError: .*column 'ssn', which is not in the file",
        "option": "ConfigurationError: .*parquet.encryption.column.keys, which Hudi does not see",
        "allowing": "ConfigurationError: .*iceberg-crypto.hudi.plaintext, which Hudi does not see",
        "session": "ConfigurationError: .*parquet.encryption.uniform.key, which Hudi does not see",
        "existing": "PlaintextFoundError: .*hoodie.table.type=MERGE_ON_READ in .hoodie/hoodie.prop",
        "overwriting": "PlaintextFoundError: .*table.type=MERGE_ON_READ \\(options\\)",
        "bootstrap": "PlaintextFoundError: .*hoodie.datasource.write.operation=bootstrap",
        "footer": "PlaintextFoundError: .*the largest record key, in plaintext footers",
        "keys beside": "NotSupportedError: .*Hudi neither moves nor cleans key files",
    }.items(),
)
def test_refused(seen: dict[str, Any], what: str, told: str) -> None:
    explained(outcome(seen, "refused")[what], told)


@pytest.mark.parametrize(
    ("what", "told"),
    {
        "statistics": "column statistics in a metadata table",
        "merge on read": "type=mor",
        "as select": "type=mor",
        "session": "hoodie.metadata.enable=true \\(this session\\)",
        "index": "column statistics in a metadata table",
        "procedure": "whatever this statement writes",
    }.items(),
)
def test_refused_in_sql(seen: dict[str, Any], what: str, told: str) -> None:
    explained(outcome(seen, "refused_in_sql")[what], f"PlaintextFoundError: .*{told}")


def test_tasks_write_a_sound_table(unchecked: dict[str, Any]) -> None:
    rows, files = outcome(unchecked, "sound")
    assert rows == {"1": 5, "2": 10}
    encrypted(files, len(files) or 1)


@pytest.mark.parametrize(
    ("what", "told"),
    {
        "statistics": "its metadata table, in .hoodie/metadata",
        "bulk": "its metadata table, in .hoodie/metadata",
        "merge on read": "hoodie.table.type=MERGE_ON_READ in .hoodie/hoodie.properties",
        "changes": "hoodie.table.cdc.enabled=true in .hoodie/hoodie.properties",
        "partition": "values of column 'ssn', in names of folders",
        "existing": "its metadata table, in .hoodie/metadata",
    }.items(),
)
def test_tasks_refuse_what_no_extension_has_seen(
    unchecked: dict[str, Any], what: str, told: str
) -> None:
    assert told in outcome(unchecked, "refused_by_tasks")[what]


def test_what_tasks_refuse_leaves_no_value(unchecked: dict[str, Any]) -> None:
    assert outcome(unchecked, "indexed") == {"1": 10}
    assert outcome(unchecked, "left") == [[], []]


@pytest.mark.parametrize("version", VERSIONS)
def test_page(tmp_path: Path, version: str) -> None:
    """The Python of docs/hudi.md, as a reader would type it; the jars are here."""
    text = (ROOT / "docs" / "hudi.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    code, jars_named = re.subn(
        r'"spark.jars.packages", "[^"]*"', '"spark.ui.enabled", "false"', code
    )
    assert jars_named == 1
    program = tmp_path / "page.py"
    program.write_text(code + "\nspark.stop()\n")
    submit = (
        f"--master local[2] --conf spark.driver.host=127.0.0.1 --jars {jars(version)} pyspark-shell"
    )
    environment = {"KEYSTORE_PASSWORD": "only-for-tests", "PYSPARK_SUBMIT_ARGS": submit}
    said = run([sys.executable, program], tmp_path, environment)
    assert "file PARE encrypted" in said
    assert "hudi timeline AVRO plaintext" in said


def test_a_refusal_leaves_nothing(seen: dict[str, Any]) -> None:
    assert outcome(seen, "nothing_written") == []


def explained(error: str, told: str) -> None:
    assert re.match(told, error), error
    assert "\n  hint: " in error
    assert PLAINTEXT in error or "Plaintext" not in error
