"""Doubles for what stands behind `_jvm`: a JVM's exceptions, and PythonApi."""

import json
from typing import Any


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


def broken_json() -> dict[str, Any]:
    """What PythonApi tells of a table with a plaintext file that has an ugly name."""
    path = "file:/w/<script>alert(1)</script>[red]x.parquet"
    problem = {"kind": "data", "path": path, "problem": "is plaintext", "hint": "rewrite it"}
    count = {"kind": "data", "magic": "PAR1", "encrypted": False, "files": 1, "bytes": 10}
    return verify_json(ok=False, problem_count=1, problems=[problem], counts=[count], files=1)


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
