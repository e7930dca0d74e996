"""A test that is not for the case at hand is skipped: one that returns would pass and prove nothing."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
JAVA_TEST = re.compile(r"@(?:Test|ParameterizedTest)\b[^{}]*\bvoid (\w+)\(.*?\n  }\n", re.DOTALL)
ONLY_RETURNS = re.compile(r"\n    if \([^{}]*\) \{\n +return;")


def test_in_python() -> None:
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for test in functions(ast.parse(path.read_text()).body):
            if test.name.startswith("test_"):
                found += [f"{path.name}::{test.name}"] * returns_first(test)
    assert not found, f"pytest.skip, or a mark: {found}"


def functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """Of a module and of its classes."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body)


def returns_first(test: ast.FunctionDef) -> bool:
    """Whether a case ends before anything is asserted."""
    for statement in test.body:
        if any(isinstance(node, ast.Assert) for node in ast.walk(statement)):
            return False
        if isinstance(statement, ast.If) and isinstance(statement.body[0], ast.Return):
            return True
    return False


def test_in_java() -> None:
    found = [
        f"{path.name}: {test[1]}"
        for path in sorted((ROOT / "jvm").rglob("src/test/**/*Test.java"))
        for test in JAVA_TEST.finditer(path.read_text())
        if ONLY_RETURNS.search(test[0])
    ]
    assert not found, f"assumeTrue: {found}"


def test_they_would_be_found() -> None:
    java = "  @Test\n  void t() {\n    if (backend != Backend.REST) {\n      return;\n    }\n  }\n"
    found = JAVA_TEST.search(java)
    assert found and ONLY_RETURNS.search(found[0])
    for text, returns in {"return": True, "assert kind": False, "x = 1": False}.items():
        (python,) = ast.parse(f"def test():\n  if kind:\n    {text}\n").body
        assert isinstance(python, ast.FunctionDef)
        assert returns_first(python) == returns
