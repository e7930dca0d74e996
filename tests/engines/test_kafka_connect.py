"""Kafka Connect's sink on encrypted tables, without Kafka: its writer, its events, and a commit."""

import os
import re
import shlex
from pathlib import Path

import pytest
from harness import programs
from harness.files import files_below, magic
from harness.jars import ROOT, SPARK_JARS, build_jars
from harness.keystore import make_keystore

pytestmark = pytest.mark.nightly

PAGE = (ROOT / "docs" / "engines.md").read_text()


def test_a_sink_writes_encrypted_files_and_tells_their_keys(tmp_path: Path) -> None:
    """With the properties of docs/engines.md."""
    keystore = make_keystore(tmp_path, {"sales": 256})
    (properties,) = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
    here = {
        "=rest": "=hadoop",
        "uri=http://localhost:8181": f"warehouse={tmp_path / 'warehouse'}",
        "/etc/kafka/keys.p12": str(keystore.path),
        "/etc/kafka/keys.password": str(keystore.password_file),
    }
    for written, ours in here.items():
        assert written in properties
        properties = properties.replace(written, ours)
    jars = [
        *build_jars("iceberg-crypto-core/libs", "iceberg-crypto-core-*.jar"),
        *build_jars("kafka-connect"),
        *sorted(SPARK_JARS.glob("hadoop-client-*.jar")),
    ]
    program = ROOT / "tests" / "engines" / "ConnectSink.java"
    command = ["java", "-cp", os.pathsep.join(map(str, jars)), str(program)]
    said = programs.run([*command, *shlex.split(properties)], tmp_path)

    assert "rows: 5" in said.splitlines()
    assert {magic(path) for path in files_below(tmp_path / "warehouse")} == {b"PARE", b"AGS1"}
    # as the page says; when this fails, the page can be fixed
    assert "keys in the event: true" in said.splitlines()
    assert "values in the event: true" in said.splitlines()
    assert "values in the event with counts: false" in said.splitlines()
