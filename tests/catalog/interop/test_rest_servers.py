"""Other people's REST servers that do not keep encrypted tables: each is refused, and no row is lost to it.

ministack has the Iceberg endpoint of AWS S3 Tables, makes a commit and drops what it does not know of it, such as
encryption-keys. Nessie has one of its own, which knows no format version 3.
"""

import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.classes import SPARK_CATALOG
from harness.jars import build_jars
from harness.jvm import ENVIRONMENT
from harness.programs import wait_for_end
from harness.sessions import OtherSession
from harness.world import STOCK, World, catalog_conf
from servers.aws import REGION, AwsServer, start_ministack, start_moto

pytestmark = pytest.mark.nightly

BUCKET = "lake-tables"


@dataclass
class Server:
    """A REST server and the S3 that its tables are in."""

    options: dict[str, str]
    s3: AwsServer
    stop: Callable[[], None]

    def objects(self) -> list[str]:
        """All but metadata.json, which these servers write and keep."""
        listed = self.s3.boto("s3").list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return [one["Key"] for one in listed if not one["Key"].endswith(".metadata.json")]


def ministack(folder: Path) -> Server:
    server = start_ministack(folder / "log", "s3,s3tables")
    bucket = server.boto("s3tables").create_table_bucket(name=BUCKET)["arn"]
    options = {"uri": f"{server.url}/iceberg", "warehouse": bucket, "rest.sigv4-enabled": "false"}
    return Server(options, server, server.stop)


def nessie(folder: Path) -> Server:
    java = newer_java()
    if java is None:
        pytest.skip("Nessie's server needs a JDK of 21 or later beside that of JAVA_HOME")
    moto = start_moto(folder / "moto.log")
    moto.boto("s3").create_bucket(Bucket=BUCKET)
    s3 = "nessie.catalog.service.s3.default-options"
    secret = "tests.s3-login"
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": "0",
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": "0",
        "quarkus.log.console.format": "%m%n",
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": f"s3://{BUCKET}/warehouse",
        f"{s3}.endpoint": moto.url,
        f"{s3}.path-style-access": "true",
        f"{s3}.region": REGION,
        f"{s3}.request-signing-enabled": "false",
        f"{s3}.access-key": f"urn:nessie-secret:quarkus:{secret}",
        f"{secret}.name": ENVIRONMENT["AWS_ACCESS_KEY_ID"],
        f"{secret}.secret": ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
    }
    process = subprocess.Popen(
        [
            *(str(java), "-Xmx512m", "-XX:TieredStopAtLevel=1"),
            *(f"-D{name}={value}" for name, value in settings.items()),
            *("-jar", str(build_jars("nessie-server")[0])),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def stop() -> None:
        process.terminate()
        wait_for_end(process)
        moto.stop()

    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line)
        listening = re.search(r"Listening on: (http://127\.0\.0\.1:\d+)", line)
        if listening:
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return Server({"uri": f"{listening[1]}/iceberg"}, moto, stop)
    stop()
    raise RuntimeError("Nessie did not start: " + "".join(lines)[-4000:])


def newer_java() -> Path | None:
    """The java of a JDK of 21 or later, beside that of JAVA_HOME."""
    for release in Path(os.environ["JAVA_HOME"]).resolve().parent.glob("*/release"):
        version = re.search(r'JAVA_VERSION="(\d+)', release.read_text())
        if version and int(version[1]) >= 21:
            return release.with_name("bin") / "java"
    return None


SERVERS = {"ministack": ministack, "nessie": nessie}


@pytest.fixture(scope="module", params=SERVERS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    started = SERVERS[request.param](tmp_path_factory.mktemp(request.param))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def session(
    world: World, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OtherSession]:
    stock = {
        "type": "rest",
        "cache-enabled": "false",
        **server.options,
        "s3.endpoint": server.s3.url,
        "s3.path-style-access": "true",
        "client.region": REGION,
    }
    ours = {**stock, "encryption.kms-type": "keystore", **world.keystore_options()}
    conf = {
        **world.session_conf(metastore=tmp_path_factory.mktemp("metastore")),
        **catalog_conf("lake", SPARK_CATALOG, ours),
        **catalog_conf("stock", STOCK, stock),
    }
    bundle = build_jars("kms-jars", "iceberg-aws-bundle-*.jar")[0]
    conf["spark.jars"] += f",{bundle}"
    with OtherSession(conf, {**ENVIRONMENT, "AWS_REGION": REGION}) as made:
        made.sql("CREATE NAMESPACE lake.db")
        yield made


ENCRYPTED = "TBLPROPERTIES ('encryption.key-id'='k1')"


def test_no_encrypted_table_is_made(session: OtherSession, server: Server) -> None:
    """And no file is written."""
    objects = server.objects()
    for statement in (
        f"CREATE TABLE lake.db.t (id BIGINT) USING iceberg {ENCRYPTED}",
        f"CREATE TABLE lake.db.q USING iceberg {ENCRYPTED} AS SELECT id FROM range(3)",
    ):
        with pytest.raises(RuntimeError) as refused:
            session.sql(statement)
        print(str(refused.value)[-1500:])  # noqa: T201
        assert re.search(r"io\.icebergcrypto\.\w+Exception: .*lake\.db\.[tq]", str(refused.value))
        assert "hint:" in str(refused.value)
        assert server.objects() == objects


def test_a_plaintext_table_stays_as_it_is(session: OtherSession, server: Server) -> None:
    place = f"LOCATION 's3://{BUCKET}/db/p'"  # ministack gives none
    session.sql(f"CREATE TABLE stock.db.p (id BIGINT) USING iceberg {place}")
    session.sql("INSERT INTO stock.db.p SELECT /*+ COALESCE(1) */ id FROM range(4)")
    objects = server.objects()
    with pytest.raises(RuntimeError) as refused:
        session.sql("CALL lake.system.encrypt_table(table => 'db.p', key_id => 'k1')")
    print(str(refused.value)[-1500:])  # noqa: T201
    assert re.search(r"io\.icebergcrypto\.\w+Exception: .*lake\.db\.p", str(refused.value))
    assert server.objects() == objects, "nothing was written"
    rows = session.sql("SELECT id FROM stock.db.p ORDER BY id")
    assert [row["id"] for row in rows] == [0, 1, 2, 3]
