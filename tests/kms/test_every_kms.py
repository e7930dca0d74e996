"""Each KMS times {key, create, insert, select in a new session, executors, rotate, verify}; and no secret travels.

One program (cluster_program.py) lives a table's life under each KMS, on a cluster of a driver and two
executors, each a JVM of its own, with tables on a JDBC catalog: in files, and for AWS in object storage. What it
saw is looked at here.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness.backends import KINDS, Backend, start
from harness.jars import build_jars
from harness.programs import outcome, seen_by
from servers.cluster import cluster_conf, spark_home

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

EVERY = (*KINDS, "ranger")
SESSIONS_ON_EXECUTORS = 2  # the one of test_executors, and the one that verifies
LOGGED = """
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c: %m%n%ex
logger.ours.name = io.icebergcrypto
logger.ours.level = trace
logger.iceberg.name = org.apache.iceberg
logger.iceberg.level = debug
logger.amazon.name = software.amazon.awssdk
logger.amazon.level = debug
logger.azure.name = com.azure
logger.azure.level = debug
"""


@dataclass
class Run:
    """What the program saw, and what it left behind."""

    seen: dict[str, Any]
    executors: int
    backends: dict[str, Backend]
    folder: Path
    error_output: str


@pytest.fixture(scope="module")
def lived(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Run]:
    """With those KMSs whose tests were chosen."""
    folder = tmp_path_factory.mktemp("every-kms")
    items = [item for item in request.session.items if item.path == request.path]
    chosen = {item.callspec.params["kind"] for item in items if hasattr(item, "callspec")}
    backends = {kind: start(kind, folder / kind) for kind in EVERY if kind in chosen}
    try:
        yield live(folder, backends)
    finally:
        for backend in backends.values():
            backend.stop()


def live(folder: Path, backends: dict[str, Backend]) -> Run:
    (folder / "events").mkdir()
    (folder / "log4j2.properties").write_text(LOGGED)
    kms = {
        kind: {
            "class": backend.kms,
            "fields": backend.fields,
            "admin": backend.admin,
            "key": backend.key,
            "options": {
                "uri": f"jdbc:sqlite:{folder}/{kind}.db",
                "jdbc.schema-version": "V1",
                "warehouse": str(folder / "warehouse" / kind),
                **backend.options,
            },
        }
        for kind, backend in backends.items()
    }
    environment = {k: v for backend in backends.values() for k, v in backend.environment.items()}
    environment["SPARK_HOME"] = str(spark_home(folder / "spark"))
    errors = folder / "stderr"
    seen = seen_by(
        Path(__file__).with_name("cluster_program.py"),
        folder,
        environment,
        errors=errors,
        timeout=900,
        conf=conf(folder, backends),
        kms=kms,
    )
    return Run(seen["kms"], seen["executors"], backends, folder, errors.read_text())


def conf(folder: Path, backends: dict[str, Backend]) -> dict[str, str]:
    logged = f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"
    java = [logged, *(option for backend in backends.values() for option in backend.java)]
    return {
        **cluster_conf(java, build_jars("kms-jars")),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.iceberg-crypto.settings-from": "session",  # its sessions have catalogs of their own
    }


def step(lived: Run, kind: str, name: str) -> Any:
    seen = lived.seen[kind]
    assert name in seen, f"not reached; the last step: {list(seen.items())[-1]}"
    return outcome(seen, name)


every_kms = pytest.mark.parametrize("kind", EVERY)


def test_executors_are_processes_of_their_own(lived: Run) -> None:
    assert lived.executors == 2


@every_kms
def test_key(lived: Run, kind: str) -> None:
    """Made, described, listed, checked from Spark, and its policy told."""
    seen = step(lived, kind, "key_made")
    made = seen["made"]
    key_id = made["key_id"]
    assert made == seen["described"]
    assert made["state"] == "enabled"
    assert key_id in seen["listed"]
    assert key_id.rpartition("/")[2] in seen["policy"] or made["detail"]["arn"] in seen["policy"]


@every_kms
def test_create(lived: Run, kind: str) -> None:
    """The trial of the key is one wrap and one unwrap; the one before it was KMS.check's.

    The third pair is that of the table's KEK, which signs its metadata, but for Azure's RSA keys.
    """
    assert step(lived, kind, "create") == {"wrap": 3, "unwrap": 3}


@every_kms
def test_insert(lived: Run, kind: str) -> None:
    """Three inserts wrap no other KEK, and unwrap none: it is in the cache."""
    assert step(lived, kind, "insert") == {"wrap": 3, "unwrap": 3}


@every_kms
def test_select_in_a_new_session(lived: Run, kind: str) -> None:
    seen = step(lived, kind, "select_in_a_new_session")
    assert seen == {"ids": list(range(30)), "driver": {"wrap": 0, "unwrap": 1}}


@every_kms
def test_executors(lived: Run, kind: str) -> None:
    """Metadata tables and expire_snapshots unwrap on executors; the driver asks for nothing more.

    An executor asks once for each KEK in each session, however many tasks it runs.
    """
    seen = step(lived, kind, "on_executors")
    assert (seen["entries"], seen["manifests"], seen["deleted_lists"]) == (6, 6, 2)
    assert seen["driver"] == {"wrap": 0, "unwrap": 1}
    count = lived.backends[kind].calls
    if count is not None:
        step(lived, kind, "shown")
        by_executors = count() - lived.seen[kind]["driver_calls"]
        assert 1 <= by_executors <= lived.executors * SESSIONS_ON_EXECUTORS


def test_calls_are_for_the_table(lived: Run) -> None:
    """AWS's encryption context has its UUID in all calls of driver and executors, but where the key is tried."""
    backend = lived.backends["aws"]
    step(lived, "aws", "shown")
    assert backend.tables is not None
    assert backend.calls is not None
    told = backend.tables()
    assert len(told) == backend.calls()
    (uuid,) = set(told) - {"none"}
    assert re.fullmatch(r"[0-9a-f-]{36}", uuid)
    assert told.count("none") == 4, "KMS.check and CREATE: a wrap and an unwrap each"


@every_kms
def test_rotate(lived: Run, kind: str) -> None:
    """After a rotation what was written before is read, and more is written; the new version wraps it all."""
    seen = step(lived, kind, "rotate")
    made = step(lived, kind, "key_made")["made"]
    assert seen["rotated"]["key_id"] == made["key_id"]
    assert seen["rotated"]["version"] != made["version"]
    assert seen["before"] == list(range(30))
    wrapped = seen["wrapped"]
    assert (wrapped["keks"], wrapped["kms_calls"], wrapped["committed"]) == (1, 3, True)
    if kind in ("keystore", "vault", "hadoop", "ranger"):
        assert (wrapped["old_versions"], wrapped["new_versions"]) == ("1", "2")
    elif kind == "pkcs11":  # the client reads the labels of keys again every 10 s
        assert wrapped["new_versions"] in ("1", "2")
    else:
        assert (wrapped["old_versions"], wrapped["new_versions"]) == (None, None)
    assert seen["after"] == list(range(40))


@every_kms
def test_verify(lived: Run, kind: str) -> None:
    seen = step(lived, kind, "verify")
    assert seen["ok"]
    assert {file["magic"] for file in seen["files"]} == {"PARE", "AGS1"}
    assert all(file["path"].startswith("s3://") == (kind == "aws") for file in seen["files"])
    assert seen["authenticated"] == (kind != "azure"), seen["authentication"]


@every_kms
def test_no_secret_travels(lived: Run, kind: str) -> None:
    """Not in the serialized table, toString, EXPLAIN, the event log, nor any log of driver and executors."""
    shown = step(lived, kind, "shown")
    assert lived.backends[kind].kind in "".join(shown["texts"]).lower()
    places = {"serialized": base64.b64decode(shown["serialized"]), "stderr": b""}
    places |= {f"text {i}": text.encode() for i, text in enumerate(shown["texts"])}
    places["stderr"] = lived.error_output.encode()
    written = [
        *(lived.folder / "events").rglob("*"),
        *(lived.folder / "spark" / "work").rglob("std*"),
    ]
    places |= {str(path): path.read_bytes() for path in written if path.is_file()}
    assert any("/work/" in place for place in places)
    assert any("/events/" in place for place in places)
    for secret in lived.backends[kind].secrets:
        for form in forms(secret):
            assert not [place for place, data in places.items() if form in data]


def forms(secret: str) -> list[bytes]:
    """A secret as it may stand in text, Java's serialization, or a header."""
    encoded = base64.b64encode(secret.encode()).rstrip(b"=")
    return [secret.encode(), secret.encode("utf-16-be"), encoded[:-1]]
