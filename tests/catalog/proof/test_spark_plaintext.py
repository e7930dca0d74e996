"""Rows of encrypted tables in what Spark itself writes to local disks and sends, and settings that keep them out."""

import secrets
import uuid
from pathlib import Path

import pytest
from harness.sessions import OtherSession, deks_of
from harness.spark_plaintext import SPILLS, Loopback, in_checkpoint, on_local_disks
from harness.world import World
from servers.cluster import spark_home

pytestmark = pytest.mark.nightly

UNCOMPRESSED = {
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.rdd.compress": "false",
    "spark.cleaner.referenceTracking": "false",  # what was shuffled stays, to be looked at
}


def create(session: OtherSession) -> tuple[str, str]:
    """A table, and a text that nothing else on this host has."""
    text = f"SECRET-{uuid.uuid4().hex}"
    namespace = f"enc_hadoop.ns_{uuid.uuid4().hex[:8]}"
    session.sql(f"CREATE NAMESPACE {namespace}")
    session.sql(
        f"CREATE TABLE {namespace}.t (id BIGINT, note STRING, part STRING) USING iceberg "
        "TBLPROPERTIES ('encryption.key-id'='k1')"
    )
    return f"{namespace}.t", text


@pytest.mark.parametrize("encrypts", [False, True], ids=["as Spark is", "local_disk_encryption"])
def test_local_disks(world: World, tmp_path: Path, encrypts: bool) -> None:
    """As docs/deploying.md says; the state of a stream is in its checkpoint, which no setting of Spark encrypts."""
    local = tmp_path / "local"
    conf = {
        **world.session_conf(tmp_path / "metastore"),
        **UNCOMPRESSED,
        **SPILLS,
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(local),
        "spark.io.encryption.enabled": str(encrypts).lower(),
    }
    with OtherSession(conf) as session:
        table, text = create(session)
        for kind, (files, plaintext) in session.do(on_local_disks, table, text, str(local)).items():
            assert files > 0, kind
            assert (plaintext > 0) is not encrypts, kind
        files, plaintext = session.do(in_checkpoint, table, text, str(tmp_path / "checkpoint"))
        assert files >= plaintext > 0
        session.sql(f"DROP TABLE {table} PURGE")


@pytest.mark.parametrize("encrypts", [False, True], ids=["as Spark is", "network.crypto"])
def test_between_processes(world: World, tmp_path: Path, encrypts: bool) -> None:
    """Rows and data keys on the way between driver and executors."""
    conf = {
        **world.session_conf(tmp_path / "metastore"),
        **UNCOMPRESSED,
        "spark.master": "local-cluster[2,1,768]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both executors take part
        "spark.executor.memory": "640m",
        "spark.executor.extraClassPath": str(world.classes),
        "spark.shuffle.readHostLocalDisk": "false",  # as on two hosts
        "spark.shuffle.reduceLocality.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    if encrypts:
        conf |= {
            "spark.authenticate": "true",
            "spark.authenticate.secret": secrets.token_hex(16),
            "spark.network.crypto.enabled": "true",
        }
    with OtherSession(conf, {"SPARK_HOME": str(spark_home(tmp_path / "spark"))}) as session:
        table, text = create(session)
        session.sql(
            f"INSERT INTO {table} SELECT /*+ REPARTITION(4) */ id, concat('{text}', id), 'p' FROM range(40)"
        )
        # one task for each file
        session.sql(
            f"ALTER TABLE {table} SET TBLPROPERTIES ('read.split.open-file-cost'='134217728')"
        )
        deks = session.do(deks_of, table)
        sent = text.encode() + b"1"  # not in a statement
        with Loopback().listening(sent, *deks) as wire:
            # no row comes to Python, which the JVM sends them over that interface, too
            grouped = f"SELECT note FROM {table} GROUP BY note"
            assert session.sql(f"SELECT count(*) AS notes FROM ({grouped})") == [{"notes": 40}]
        assert wire.packets > 100
        assert (wire.found.pop(sent) > 0) is not encrypts
        assert len(wire.found) >= 4
        assert any(wire.found.values()) is not encrypts, "data keys"
        session.sql(f"DROP TABLE {table} PURGE")
