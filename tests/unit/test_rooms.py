"""The rooms of the Python package in docs/architecture.md, section "Folders": who may use whom."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "pyspark_iceberg_crypto"
TOP = ast.walk(ast.parse((PACKAGE / "__init__.py").read_text()))
EXPORTED = {a.name: n for n in TOP if isinstance(n, ast.ImportFrom) and n.level for a in n.names}
# From the bottom up: a room, or a module beside them, uses those before it, and none after it.
ROOMS = [
    *("errors", "_names", "local", "schemas", "jvm", "__init__", "kms", "reader", "columns"),
    *("reports", "evidence", "verbs", "settings", "session", "doctor", "demo", "cli"),
]
ROOM_OF = {path: path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")}


def uses(node: ast.AST) -> Iterator[str]:
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING":
            continue
        if isinstance(one, ast.ImportFrom):
            assert not one.level, "write the whole name"
            for name in (f"{one.module}.{alias.name}".split(".") for alias in one.names):
                if name[0] == PACKAGE.name:
                    found = (EXPORTED[name[1]].module or "") if name[1] in EXPORTED else name[1]
                    yield "__init__" if name[1] == "__version__" else found.split(".")[0]
        elif isinstance(one, ast.Import):
            assert PACKAGE.name not in ast.unparse(one), "write from ... import ..."
        yield from uses(one)


@pytest.mark.parametrize("room", sorted({first.removesuffix(".py") for first in ROOM_OF.values()}))
def test_a_room_uses_those_below_it(room: str) -> None:
    paths = [path for path, first in ROOM_OF.items() if first in (room, f"{room}.py")]
    found = {one for path in paths for one in uses(ast.parse(path.read_text()))}
    assert found <= {*ROOMS[: ROOMS.index(room) + 1]}
