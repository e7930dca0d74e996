"""No data key and no KEK in anything that Spark or a log shows: plans, event log, UI, logs at TRACE, errors."""

import base64
import re
import uuid
from pathlib import Path

import pytest
from harness.classes import CACHING_KMS_CLIENT
from harness.lake import FILES_ON_DRIVER
from harness.programs import seen_by
from harness.sessions import OtherSession, deks_in_shuffles
from harness.world import World

from pyspark_iceberg_crypto import spark_conf

PLANTED = "planted-credential-1093"
LOGGED = """
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = File
appender.out.name = out
appender.out.fileName = {file}
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c: %m%n%ex
logger.ours.name = io.icebergcrypto
logger.ours.level = trace
logger.iceberg.name = org.apache.iceberg
logger.iceberg.level = trace
logger.sql.name = org.apache.spark.sql
logger.sql.level = debug
"""


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["jdbc", "rest"])
def test_no_key_is_shown(world: World, tmp_path: Path, kind: str) -> None:
    events, logs = tmp_path / "events", tmp_path / "logs"
    events.mkdir()
    logs.mkdir()
    settings = tmp_path / "log4j2.properties"
    settings.write_text(LOGGED.format(file=logs / "driver.log"))
    conf = world.session_conf(tmp_path / "metastore")
    catalog = f"enc_{kind}"
    conf[f"spark.sql.catalog.{catalog}.warehouse"] = str(tmp_path / kind)
    conf[f"spark.sql.catalog.{catalog}.cache-enabled"] = "false"
    conf["spark.sql.catalog.enc_jdbc.uri"] = f"jdbc:sqlite:{tmp_path}/jdbc.db"
    conf["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile={settings}"
    conf |= {
        "spark.driver.host": "127.0.0.1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.maxPlanStringLength": "1000000",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.local.dir": str(tmp_path / "local"),
        "spark.shuffle.compress": "false",
        "spark.cleaner.referenceTracking": "false",  # what was shuffled stays, to be looked at
    }
    planted = {"type": "rest", "uri": "http://127.0.0.1:1", "packages": False}
    conf = spark_conf("planted", **planted, options={"credential": PLANTED}) | conf
    namespace = f"ns_{uuid.uuid4().hex[:8]}"
    seen = seen_by(
        Path(__file__).with_name("secrets_program.py"),
        tmp_path,
        conf=conf,
        catalogs=[catalog],
        namespace=namespace,
        files=[str(events), str(logs)],
        shuffled=str(tmp_path / "local"),
    )
    shown: dict[str, str] = seen["shown"]
    assert_looked_at(shown)
    log = next(text for place, text in shown.items() if place.endswith("driver.log"))
    found = {place for place, text in shown.items() if PLANTED in text and text != log}
    assert not found, "Spark itself logs a session's settings at DEBUG, and nothing else shows them"
    for call in ("wrap", "unwrap"):
        line = (
            rf" DEBUG {re.escape(CACHING_KMS_CLIENT)}: .*: {call} with key 'k1'"
            rf" for table {catalog}\.{namespace}\.\w+, \d+ ms: ok\n"
        )
        assert re.search(line, log), f"no line for {call}"
    keys = seen["keys"][catalog]
    # a KEK; two data files with their vectors; manifests; a value key
    assert len(keys) >= 1 + 4 + 3 + 1 and len(base64.b64decode(keys[-1])) == 32
    for key in map(base64.b64decode, keys):
        assert len(key) in (16, 32)
        for form in forms(key):
            places = [place for place, text in shown.items() if form in text]
            assert not places, f"a key is in {places}"


@pytest.mark.nightly
def test_icebergs_procedures_shuffle_keys_unless_spark_encrypts(
    world: World, tmp_path: Path
) -> None:
    """As docs/procedures.md says; without the setting, as the control."""
    for encrypts in ("false", "true"):
        conf = {
            **world.session_conf(tmp_path / f"metastore-{encrypts}"),
            "spark.driver.host": "127.0.0.1",
            "spark.io.encryption.enabled": encrypts,
            "spark.local.dir": str(tmp_path / f"local-{encrypts}"),
            "spark.shuffle.compress": "false",
            "spark.cleaner.referenceTracking": "false",
            FILES_ON_DRIVER: "0",
        }
        with OtherSession(conf) as session:
            for procedure, arguments in (
                ("rewrite_manifests", ""),
                ("expire_snapshots", ", older_than => TIMESTAMP '2999-01-01 00:00:00'"),
                ("remove_orphan_files", ""),
                ("reencrypt_table", ""),
                ("rewrite_table_path", ", source_prefix => 'SOURCE', target_prefix => 'COPY'"),
            ):
                name = f"ns_{uuid.uuid4().hex[:8]}.t"
                folder = world.warehouse("hadoop") / name.replace(".", "/")
                arguments = arguments.replace("SOURCE", str(folder)).replace("COPY", str(tmp_path))
                table = f"enc_hadoop.{name}"
                session.sql(
                    f"CREATE TABLE {table} (id INT, part STRING) USING iceberg PARTITIONED BY (part)"
                    " TBLPROPERTIES ('encryption.key-id'='k1')"
                )
                for _ in range(3):
                    session.sql(f"INSERT INTO {table} VALUES (1, 'p')")
                call = f"CALL enc_hadoop.system.{procedure}(table => '{name}'{arguments})"
                found = session.do(deks_in_shuffles, table, [call])
                ours = procedure in ("reencrypt_table", "rewrite_table_path")
                is_hidden = encrypts == "true" or ours
                assert (found == 0) is is_hidden, (procedure, found)
                session.sql(f"DROP TABLE {table}")


def assert_looked_at(shown: dict[str, str]) -> None:
    """There is something in each place, or nothing found in it would mean nothing."""
    log = next(text for place, text in shown.items() if place.endswith("driver.log"))
    assert " DEBUG org.apache.iceberg" in log
    assert "SparkListenerSQLExecutionStart" in "".join(shown.values())
    assert all(text for place, text in shown.items() if place.startswith(("ui/", "explain ")))
    shuffled = "".join(text for place, text in shown.items() if place.endswith(".data"))
    assert ".parquet" in shuffled, "paths, and not keys"
    assert "Row(" in shown["verify"] and "problem='" not in shown["verify"]
    errors = [text for place, text in shown.items() if place.startswith("error of ")]
    assert sum("TamperedException" in text for text in errors) >= len(errors) // 2


def forms(key: bytes) -> list[str]:
    """A key as programs write bytes into text; Java's are signed."""
    signed = [byte - 256 if byte > 127 else byte for byte in key]
    return [
        key.hex(),
        key.hex().upper(),
        key.hex(" ").upper(),  # Spark's BINARY
        *base64_forms(key),
        ", ".join(map(str, signed)),
        ",".join(map(str, signed)),
        ", ".join(map(str, key)),
        key.decode("utf-8", errors="replace"),
        key.decode("latin-1"),
    ]


def base64_forms(key: bytes) -> list[str]:
    """Its characters wherever it stands in what was encoded: those that no byte before or behind it changes."""
    found = []
    for before in range(3):
        start, end = (before * 8 + 5) // 6, (before + len(key)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            found.append(encode(bytes(before) + key).decode()[start:end])
    return found
