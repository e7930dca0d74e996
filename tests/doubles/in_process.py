"""Doubles for what stands behind `_jvm`: a JVM's exceptions, and PythonApi's answers. And a double of a KMS."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import click

from pyspark_iceberg_crypto import ConfigurationError, KeyInfo, KeyNotFoundError, Kms, KmsMetrics
from pyspark_iceberg_crypto.kms._client import MasterKeys
from pyspark_iceberg_crypto.kms._settings import about, setting


class JavaThrowable:
    """A Java exception as Py4J shows it."""

    def __init__(
        self,
        name: str,
        problem: str = "",
        hint: str | None = None,
        cause: "JavaThrowable | None" = None,
    ) -> None:
        self._name, self._problem, self._hint, self._cause = name, problem, hint, cause
        self._target_id = "o1"

    def getClass(self) -> "JavaThrowable":  # noqa: N802
        return self

    def getName(self) -> str:  # noqa: N802
        return self._name

    def problem(self) -> str:
        return self._problem

    def hint(self) -> str | None:
        return self._hint

    def getMessage(self) -> str:  # noqa: N802
        return self._problem

    def getCause(self) -> "JavaThrowable | None":  # noqa: N802
        return self._cause

    def toString(self) -> str:  # noqa: N802
        return f"{self._name}: {self._problem}"


def commands(
    command: click.Command, *words: str
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command, or a group and each that is below it, by their words."""
    yield words, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            assert below is not None
            yield from commands(below, *words, name)


def answering(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Stand for `_jvm.run`: the answer is asked for with the operation, and the arguments in their order."""

    def run(_: Any, operation: str, *, progress: Any = None, **given: Any) -> Any:
        return answer(operation, *given.values())

    return run


def verify_json(**changes: Any) -> dict[str, Any]:
    """What PythonApi tells of a table that is encrypted throughout."""
    counts = [
        {"kind": "data", "magic": "PARE", "encrypted": True, "files": 3, "bytes": 123_456},
        {"kind": "manifest", "magic": "AGS1", "encrypted": True, "files": 1, "bytes": 7_890},
    ]
    found = {
        "table": "lake.db.t",
        "key_id": "k1",
        "format_version": 3,
        "metadata_authenticated": True,
        "metadata_authentication": "each load checks its MAC",
        "ok": True,
        "all_snapshots": False,
        "deep": False,
        "snapshots": 1,
        "files": 4,
        "bytes": 131_346,
        "seconds": 0.42,
        "counts": counts,
        "problem_count": 0,
        "problems": [],
    }
    return {**found, **changes}


def evidence_json(**changes: Any) -> dict[str, Any]:
    """The same with all that makes it evidence, and history, keys and a problem of each sort."""
    path = "s3://b/w/t/data/<script>alert(1)</script>\u202egnp.\x1b[31m.parquet"
    found = {"kind": "data", "path": path, "problem": "it is plaintext", "hint": "rewrite it"}
    damaged = {
        "kind": "manifest",
        "path": "s3://b/m.avro",
        "problem": "a tag is wrong",
        "hint": None,
    }
    denied = {"kind": "statistics", "path": "s3://b/x.stats", "problem": "denied", "hint": None}
    counts = [
        {"kind": "data", "magic": "PARE", "encrypted": True, "files": 3, "bytes": 900_000},
        {
            **{"kind": "manifest", "magic": "AGS1", "encrypted": True, "files": 2, "bytes": 8_000},
            **{"wrong_files": 1, "wrong_bytes": 3_000},
        },
        {"kind": "data", "magic": "PAR1", "encrypted": False, "files": 1, "bytes": 100_000},
        {"kind": "metadata file", "magic": "JSON", "encrypted": False, "files": 2, "bytes": 9_000},
        {"kind": "statistics", "magic": None, "encrypted": False, "files": 1, "bytes": 0},
    ]
    key = {"key_id": "kek-1", "kind": "kek", "encrypted_by": "k1", "created_at": None}
    history = [
        {"snapshot_id": 2**62 + day, "timestamp": f"2026-01-0{day}T00:00:00Z", "files": day}
        for day in range(1, 6)
    ]
    more = {
        "schema_version": 1,
        "ok": False,
        "files": 9,
        "bytes": 1_017_000,
        "counts": counts,
        "problem_count": 2,
        "unchecked_count": 1,
        "problems": [
            {**found, "unchecked": False, "code": "plaintext"},
            {**damaged, "unchecked": False, "code": "tampered"},
            {**denied, "unchecked": True, "code": "unreadable"},
        ],
        "depth": "deep",
        "sample": 1.0,
        "seed": 7,
        "all_snapshots": True,
        "snapshots": 5,
        "strays": True,
        "table_uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://b/w/t",
        "metadata_location": "s3://b/w/t/metadata/00002-x.metadata.json",
        "metadata_sha256": "0a" * 32,
        "current_snapshot_id": 2**62 + 5,
        "snapshot_ids": [2**62 + day for day in range(5, 0, -1)],
        "versions": {
            "iceberg_crypto": "0.1.0",
            "iceberg": "1.12.0",
            "spark": "4.1.4",
            "java": "17",
        },
        "started_at": "2026-02-01T00:00:00.123Z",
        "ended_at": "2026-02-01T00:00:01Z",
        "snapshot_history": [{**one, "bytes": 10_000 * one["files"]} for one in history],
        "encryption_keys": [
            {"key_id": "k1", "kind": "master", "encrypted_by": None, "kms_answers": True},
            {**key, "age_days": 800, "snapshots": 5, "overdue": True, "problem": None},
        ],
    }
    return verify_json(**{**more, **changes})


def broken_json() -> dict[str, Any]:
    """What PythonApi tells of a table with a plaintext file that has an ugly name."""
    path = "file:/w/<script>alert(1)</script>[red]x.parquet"
    problem = {"kind": "data", "path": path, "problem": "is plaintext", "hint": "rewrite it"}
    count = {"kind": "data", "magic": "PAR1", "encrypted": False, "files": 1, "bytes": 10}
    totals = {"files": 1, "bytes": 10}
    return verify_json(ok=False, problem_count=1, problems=[problem], counts=[count], **totals)


def row(kind: str, key_id: str, **more: Any) -> dict[str, Any]:
    found = dict.fromkeys(
        ("encrypted_by", "created_at", "age_days", "kms_answers", "authenticated_wrapping")
    )
    rest = {
        "snapshots": 0,
        "overdue": False,
        "problem": None,
        "used_for": None,
        "key_length": None,
        "key_version": None,
    }
    return {"key_id": key_id, "kind": kind, **found, **rest, **more}


def keys_json(*more: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What PythonApi tells of a table with two snapshots."""
    kms = {"kms_answers": True, "authenticated_wrapping": True}
    kek = {"encrypted_by": "k1", "created_at": "2026-11-01T00:00:00Z", "age_days": 21}
    rows = [
        row("master", "k1", snapshots=2, **kms),
        row("kek", "kek-1", snapshots=2, key_length=16, **kek, **kms),
        row("manifest list", "list-1", encrypted_by="kek-1", snapshots=1, key_length=16),
        row("manifest list", "list-2", encrypted_by="kek-1", snapshots=1, key_length=32),
        *more,
    ]
    found = {
        "table": "lake.db.t",
        "key_id": "k1",
        "data_key_length": None,
        "kek_max_age_days": 730,
        "kms": "Keystore /k.p12",
        "kms_calls": 1,
        "kms_problem": None,
        "rows": rows,
    }
    return {**found, **changes}


# What PythonApi tells of each operation.
DONE = {"table": "lake.db.t", "message": "done", "committed": True}
ENCRYPTED = {
    **DONE,
    **{"key_id": "k", "refs": 1, "files": 2, "bytes": 3, "copied_files": 2, "files_left": 0},
    **{"rows": 4, "kms_calls": 1, "seconds": None, "plaintext_metadata": "m", "dry_run": False},
}
PRUNED = {**DONE, "keys_before": 3, "removed": 1, "kept": 2, "bytes_before": 9, "bytes_after": 5}
ROTATED = {
    **DONE,
    **{"old_key_id": "k", "new_key_id": "k", "keks": 1, "old_versions": None},
    **{"new_versions": "2", "kms_calls": 2, "value_keys": 0, "value_keys_left": None},
}
FINDING = {"kind": "key id removed", "problem": "p", "consequence": "c", "hint": "h"}
REENCRYPTED = {
    **DONE,
    **{"data_files": 1, "delete_files": 0, "bytes": 9, "left": 0, "snapshots": 1, "refs": ""},
    "expire_statement": None,
}
TABLES = [
    {"name": "lake.db.t", "view": False, "failure": None, "hint": None},
    {"name": "lake.db.u", "view": False, "failure": None, "hint": None},
    {"name": "lake.db.v", "view": True, "failure": None, "hint": None},
    {"name": "lake.no", "view": False, "failure": "may not list it", "hint": "ask"},
]
ANSWERS: dict[str, Any] = {
    "list_tables": TABLES,
    "encrypt_table": ENCRYPTED,
    "decrypt_table": {**DONE, "old_key_id": "k", "files": 1, "bytes": 9},
    "purge_plaintext": {
        **DONE,
        "files": 1,
        "bytes": 9,
        "paths": ["/a"],
        "outside": {},
        "outside_paths": [],
        "left": 0,
        "left_paths": [],
        "gaps": [],
    },
    "prune_encryption_keys": PRUNED,
    "reencrypt_table": REENCRYPTED,
    "repair_table": {
        "table": "lake.db.t",
        "unchecked": False,
        "findings": [{**FINDING, "repairable": True, "repaired": False}],
    },
    "rotate_master_key": ROTATED,
    "rotate_catalog": {
        "done": [ROTATED],
        "left": [{"table": "lake.no", "problem": "may not list it", "hint": "ask"}],
        "skipped": ["lake.db.v"],
        "current": [],
    },
    "encryption_keys": keys_json(),
    "master_key_use": {"table": "lake.db.t", "key_id": "k", "has_old_plaintext": False},
    "check_report": None,
}


class SparkDouble:
    """A session: its settings, and the namespaces that there are, and tables; `asked`: for which namespaces."""

    def __init__(self, *namespaces: str, **settings: str) -> None:
        self._namespaces, self._settings = namespaces, settings
        self.asked: list[str] = []

    @property
    def conf(self) -> "SparkDouble":
        return self

    @property
    def catalog(self) -> "SparkDouble":
        return self

    def get(self, name: str, default: str | None) -> str | None:
        return self._settings.get(name.removeprefix("spark.sql.catalog."), default)

    def databaseExists(self, name: str) -> bool:  # noqa: N802
        self.asked.append(name)
        return name in self._namespaces

    def tableExists(self, name: str) -> bool:  # noqa: N802
        return name in self._namespaces


class VerifyResult:
    """PythonApi's VerifyResult."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found
        self.closed = 0

    def json(self) -> str:
        return json.dumps(self.found)

    def files(self) -> str:
        return "a Java Dataset"

    def close(self) -> None:
        self.closed += 1


@dataclass(frozen=True)
class DoubleKms(Kms):
    """A KMS in this process's memory, with settings of every sort."""

    address: str = field(metadata=about("Where it is, such as https://kms."))
    token_env: str | None = setting("The environment variable that holds the token.")
    context: Mapping[str, str] = setting("What to bind each key to.", dict)
    timeout: int = setting("Seconds.", 10)
    plain: bool = setting("Whether to do without.", True)

    kms_type: ClassVar[str] = "double"
    extra: ClassVar[str] = "double"
    packages: ClassVar[tuple[str, ...]] = ("org.double:double-bundle:1.0",)
    keys: ClassVar[dict[str, KeyInfo]] = {}

    def properties(self) -> dict[str, str]:
        return {"encryption.kms-type": "double", "encryption.kms.double.address": self.address}

    def create_key(self, name: str, *, bits: int = 256, label: str | None = None) -> KeyInfo:
        """Make a key.

        Args:
            name: its name.
            bits: its length in bits.
            label: what to call it.
        """
        if name in self.keys:
            raise ConfigurationError(f"{self.address} already has a key {name!r}", "choose another")
        detail = {"label": label} if label else {}
        self.keys[name] = KeyInfo(name, "enabled", f"aes{bits}", "1", 1, "2026-01-02", detail)
        return self.keys[name]

    def list_keys(self) -> list[KeyInfo]:
        return list(self.keys.values())

    def describe_key(self, key_id: str) -> KeyInfo:
        if key_id not in self.keys:
            raise KeyNotFoundError(f"{self.address} has no key {key_id!r}", "create it")
        return self.keys[key_id]

    def rotate_key(self, key_id: str) -> KeyInfo:
        key = self.describe_key(key_id)
        self.keys[key_id] = replace(key, version=str(int(key.version) + 1), versions=2)
        return self.keys[key_id]

    def _open(self, call_seconds: float) -> MasterKeys:
        raise NotImplementedError

    def driver_policy(self, key_ids: Sequence[str]) -> str:
        return "# for Spark's driver\n" + "\n".join(f"allow {key_id}" for key_id in key_ids)


def metrics(**changes: Any) -> KmsMetrics:
    """Counters of a catalog that asked nothing yet."""
    numbers = dict.fromkeys(KmsMetrics.__dataclass_fields__, 0)
    return KmsMetrics(**{**numbers, "kms": "Double at https://kms", "circuit": "closed", **changes})
