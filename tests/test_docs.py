"""The documents name nothing that does not exist: tests, files, make targets, properties, errors, Python names."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import pyspark_iceberg_crypto

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "dev"))
import properties  # noqa: E402

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(params=DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def document(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def java_files(kind: str, name: str = "*") -> list[Path]:
    """Java files of all modules, of `main` or `test`."""
    return sorted((ROOT / "jvm").glob(f"**/src/{kind}/java/**/{name}.java"))


def java_sources() -> str:
    return "\n".join(path.read_text() for path in java_files("main"))


@cache
def names_in(path: Path) -> set[str]:
    """The functions and classes of a Python file."""
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "name")}


def test_named_tests_exist(document: Path) -> None:
    for file, name in re.findall(r"`(?:tests/)?([\w/]+\.py)::(\w+)`", document.read_text()):
        paths = [path for path in (ROOT / "tests").rglob(Path(file).name) if path.match(file)]
        assert any(name in names_in(path) for path in paths), f"{file} has no {name}"
    for file, name in re.findall(r"`(\w+Test)\.(\w+)`", document.read_text()):
        (path,) = java_files("test", file)
        assert f"void {name}(" in path.read_text(), f"{file} has no {name}"
    for file in re.findall(r"`(\w+Test)`", document.read_text()):
        assert java_files("test", file), f"there is no {file}"


def test_links_and_paths_lead_somewhere(document: Path) -> None:
    text = document.read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (document.parent / target).exists(), target
    for path in re.findall(r"`((?:examples|tests|docs|jvm(?!/build))/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^([a-z-]+):.*(?:##|#\+) ", text, re.MULTILINE))


def test_make_targets_exist(document: Path) -> None:
    targets = make_targets()
    named = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", document.read_text(), re.MULTILINE))
    assert named <= targets


def test_contributing_lists_every_target() -> None:
    targets = make_targets()
    named = set(re.findall(r"`make ([a-z-]+)", (ROOT / "CONTRIBUTING.md").read_text()))
    assert targets - {"help"} <= named


def test_python_in_documents_compiles_and_imports_what_there_is(document: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module == "pyspark_iceberg_crypto":
                for alias in node.names:
                    assert hasattr(pyspark_iceberg_crypto, alias.name), alias.name


def blocks_of(page: str, heading: str) -> list[str]:
    """The Python below a heading of a page."""
    text = (ROOT / "docs" / f"{page}.md").read_text().partition(f"\n## {heading}\n")[2]
    return re.findall(r"```python\n(.*?)```", text.partition("\n## ")[0], re.DOTALL)


def test_settings_in_a_file_are_those_of_spark_conf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads the file as java.util.Properties: a backslash there quotes what follows it."""
    monkeypatch.chdir(tmp_path)
    code = blocks_of("deploying", "The settings")[0]
    rules = {"encryption.allowed-key-ids": r"a\,b, prod\*"}
    names: dict[str, Any] = {"rules": rules}
    exec(code.replace('type="rest",', 'type="rest", options=rules,'), names)
    lines = [line.split(None, 1) for line in Path("lake.conf").read_text().splitlines()]
    read = {name: re.sub(r"\\(.)", r"\1", value) for name, value in lines}
    assert read == names["conf"]
    assert rules.items() <= {name.rpartition("lake.")[2]: read[name] for name in read}.items()


def test_a_file_that_yarn_copies_is_named_as_its_copy() -> None:
    names: dict[str, Any] = {}
    exec(blocks_of("deploying", "YARN")[0], names)
    assert names["conf"]["spark.sql.catalog.lake.encryption.kms.vault.token-file"] == "vault-token"


def test_the_folders_of_a_purged_table_go_and_a_new_one_stays(tmp_path: Path) -> None:
    (command,) = re.findall("`(find FOLDER [^`]*)`", (ROOT / "docs" / "guide.md").read_text())
    for folder in ("t/data/part=a", "t/data/part=b", "t/metadata"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "t/metadata/v1.metadata.json").touch()
    subprocess.run(
        [str(tmp_path / "t") if w == "FOLDER" else w for w in command.split()], check=True
    )
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["t", "t/metadata", "t/metadata/v1.metadata.json"]


def test_the_code_and_the_reference_have_the_same_properties() -> None:
    """Those of properties.tsv: all that stand as text in the sources, and no others."""
    python = (ROOT / "pyspark_iceberg_crypto").rglob("*.py")
    sources = java_sources() + "\n".join(path.read_text() for path in python)
    found = set(re.findall(r'"(encryption\.[a-z][\w.-]+\w)"', sources))
    within_a_jvm = {name for name in found if name.endswith(".shared-id")}
    not_properties = {"encryption.kms", "encryption.value_keys"}  # a prefix, a table
    documented = {row["property"] for row in properties.rows()}
    assert found - within_a_jvm - not_properties <= documented
    read_by_iceberg = {
        "encryption.kms-type",
        "encryption.kms-impl",
        "encryption.key-id",
        "encryption.data-key-length",
    }
    ours = {name for name in documented - read_by_iceberg if name.startswith("encryption.")}
    assert {name for name in ours if f'"{name.removesuffix("NAME")}"' not in sources} == set()


def test_the_tables_of_the_reference_are_those_of_the_code() -> None:
    text = properties.PAGE.read_text()
    sections = {row["section"] for row in properties.rows()}
    assert {
        section for section in sections if f"<!-- properties: {section} -->" not in text
    } == set()
    assert properties.page(text) == text, "run: python dev/properties.py"


def test_a_bar_in_a_meaning_ends_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"section": "kms", "property": "x", "default": "", "meaning": "a|b", "bad values": ""}
    monkeypatch.setattr(properties, "rows", lambda: [row])
    assert r"| `x` | | a\|b | |" in properties.page("<!-- properties: kms -->\n\n")


def test_every_property_of_a_session_is_documented() -> None:
    """Named in `backticks` on any page."""
    found = set(re.findall(r'"((?:spark\.)?iceberg-crypto\.[a-z]+[.-][a-z.-]+)"', java_sources()))
    assert found
    pages = "\n".join(document.read_text() for document in DOCUMENTS)
    assert {name for name in found if f"`{name}" not in pages} == set()


def named_in(nav: object) -> Iterator[str]:
    """The pages that a part of mkdocs.yml's nav names."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        nav = list(nav.values())
    if isinstance(nav, list):
        for part in nav:
            yield from named_in(part)


def test_the_site_has_every_document() -> None:
    """`make docs` would fail; this says so sooner."""
    text = (ROOT / "mkdocs.yml").read_text()
    pages = set(named_in(yaml.safe_load(text[text.index("\nnav:") :])))
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert not written - pages, "add these to the nav of mkdocs.yml"


def test_the_reference_has_every_name_of_the_package() -> None:
    reference = (ROOT / "docs" / "reference" / "python.md").read_text()
    named = re.findall(r"^::: pyspark_iceberg_crypto\.(\w+)$", reference, re.MULTILINE)
    assert sorted(named) == sorted(set(pyspark_iceberg_crypto.__all__) - {"__version__"})


def test_readme_has_the_versions_that_are_tested() -> None:
    readme = (ROOT / "README.md").read_text()
    settings = (ROOT / "gradle.properties").read_text()
    locked = (ROOT / "dev" / "constraints.txt").read_text()
    for name, found in (
        ("Spark", re.search(r"^pyspark==(.*)$", locked, re.MULTILINE)),
        ("Iceberg", re.search(r"^icebergVersion=(.*)$", settings, re.MULTILINE)),
    ):
        assert found
        minor = re.escape(found[1].rpartition(".")[0])
        assert re.search(rf"^\| {name} \| {minor}\b", readme, re.MULTILINE), found


def test_readme_has_figures_of_the_benchmarks_only() -> None:
    costs = (ROOT / "README.md").read_text().partition("## What it costs")[2].partition("\n## ")[0]
    figures = re.findall(r"[\d.]+ \([\d.]+ to [\d.]+\)", costs)
    assert len(figures) == 5
    pages = ("benchmarks.md", "benchmarks-tables.md")
    benchmarks = "".join((ROOT / "docs" / page).read_text() for page in pages)
    assert not [one for one in figures if one not in benchmarks]


def test_the_documents_are_plain() -> None:
    """No emoji, no badges, no path of someone's machine."""
    for document in DOCUMENTS:
        text = document.read_text()
        assert text.isascii(), sorted({c for c in text if not c.isascii()})
        assert not re.search(r"shields\.io|/work/|/tmp/venv|/root/", text), document
