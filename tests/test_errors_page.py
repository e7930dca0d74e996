"""docs/errors.md has a heading for each message of an error in the code, and none for a message that is gone."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyspark_iceberg_crypto
from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.jvm._typed import _PYTHON_TYPES

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "errors.md").read_text()
ANY = "\0"  # what varies in a message

# What these say is in their constructors; they are given a reason or a hint.
OF_ONE_MESSAGE = {"NotEncryptedError", "CancelledError"}

# Where an error has no words of its own: its callers have them, in the same file if none is named.
WORDS_OF_CALLERS = {
    "AllowedKeyIds.java": "what is wrong with the list: 'Property ... has a backslash ...'",
    "AzureLogin.java": "why there was no login yet: '...: the login service is busy'",
    "BadWrappedKeyException.java": "its factory method, whose callers are looked at instead",
    "CatalogSettings.java": "NamespaceKeys and others: an error of the property table-default.*",
    "CatalogTables.java": "a text that a loop completes: 'Nothing was verified: ...'",
    "KeyedInspection.java": "FileKind: 'it is not encrypted: it starts with ...'",
    "NamespaceKeys.java": "'encryption.key-id was not set ...' and 'was not kept ...'",
    "NotAsWritten.java": "ParquetModules and others: '... does not have the ... bytes ...'",
    "ParquetFooterCheck.java": "'file ... does not end like ...', '... is not encrypted with AES_GCM_V1'",
    "TableEncryption.java": "a setting for tests",
    "TableReencryption.java": "Iceberg's own words on an option of rewrite_data_files",
    "VaultConfig.java": "HttpsAddress: 'Property ... names no host'",
    "VaultHttp.java": "'... is sealed' and so on",
    "_session.py": "an error of Spark or Java, of one line, that doctor reports",
    "values.py": "only names: 'name=5 of create_value_key'",
}


class Heading(NamedTuple):
    kind: str
    title: str
    lines: list[str]


class Message(NamedTuple):
    """What an error that is thrown at one place says."""

    place: str
    kind: str  # the Python type, for Java's errors, too
    text: str


# ---- the page


@cache
def headings() -> list[Heading]:
    found = []
    for section in PAGE.split("\n## ")[1:]:
        kind, *parts = section.split("\n### ")
        for part in parts:
            title, _, below = part.partition("\n")
            found.append(Heading(kind.partition("\n")[0], title, below.splitlines()))
    return found


def of_this_project() -> list[Heading]:
    return [heading for heading in headings() if heading.kind.endswith("Error")]


@cache
def fixed(title: str) -> list[str]:
    """The fixed words of a heading's message: of what is in back quotes, and not of what follows."""
    message = re.sub(
        r"\b[a-z-]+(\.[a-z-]+)+(=\w+)?", "...", title.split("`")[1]
    )  # in the code a constant
    return [part.strip("' ") for part in message.split("...")]  # Python's are quoted by !r


def is_of(heading: Heading, text: str) -> bool:
    """Whether a message has a heading's fixed words, in their order."""
    end = 0
    for part in fixed(heading.title):
        start = text.find(part, end)
        if start < 0:
            return False
        end = start + len(part)
    return True


# ---- Java

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])+\'|\w+|\s+|.', re.DOTALL
)


@cache
def java_files() -> dict[Path, list[str]]:
    """The tokens of each file of main."""
    return {
        path: [
            token
            for token in TOKEN.findall(path.read_text())
            if not token.isspace() and not token.startswith(("//", "/*"))
        ]
        for path in sorted((ROOT / "jvm").glob("**/src/main/java/**/*.java"))
    }


def java_text(tokens: list[str], variables: dict[str, str]) -> str:
    """The literals of an expression, with ANY for what is between them."""
    text = ""
    for i, token in enumerate(tokens):
        if token.startswith('"') and token != '"""':
            literal = token[1:-1].replace('\\"', '"').replace("\\\\", "\\")
            text += re.sub(r"%[\d$,.]*[sdxXt]\w?", ANY, literal)
        elif token in variables:
            text += variables[token]
        elif token != "+" or not all(one[0] == '"' for one in tokens[i - 1 : i + 2 : 2]):
            text += ANY
    return re.sub(f"{ANY}+", ANY, text)


def arguments(tokens: list[str]) -> list[list[str]]:
    """The arguments of a call, of the tokens from its parenthesis on."""
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in "([{") - (token in ")]}")
        if not depth:
            break
        if token == "," and depth == 1:
            found.append([])
        elif (token, depth) != ("(", 1) or found != [[]]:
            found[-1].append(token)
    return found


def java_errors() -> list[Message]:
    found = []
    for path, tokens in java_files().items():
        variables: dict[str, str] = {}  # the words that each was given last
        for i, token in enumerate(tokens[:-3]):
            if token == "String" and tokens[i + 2] == "=":
                value = tokens[i + 3 : tokens.index(";", i)]
                variables[tokens[i + 1]] = java_text(value, variables)
            kind = _PYTHON_TYPES.get(token)
            is_new = tokens[i - 1] == "new" and tokens[i + 1] == "("
            if kind is None or not (is_new or tokens[i + 2] == "ofAnswer"):
                continue
            given = arguments(tokens[i + 1 if is_new else i + 3 :])
            problem = given[1] if "ProblemCode" in given[0] or len(given) == 4 else given[0]
            found.append(Message(path.name, kind.__name__, java_text(problem, variables)))
    return found


def java_literals() -> list[str]:
    """Those that "+" joins are one."""
    found = []
    for tokens in java_files().values():
        group: list[str] = []
        for token in tokens:
            if token[0] == '"' or (token == "+" and group):
                group.append(token)
            elif group:
                found.append(java_text(group, {}))
                group = []
    return found


# ---- Python


def python_text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(python_text, values))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return python_text(left) + python_text(right)
        case ast.IfExp(body=body, orelse=orelse):
            return python_text(body) + ANY + python_text(orelse)
    return ANY


@cache
def python_nodes() -> list[tuple[str, ast.AST]]:
    return [
        (path.name, node)
        for path in sorted((ROOT / "pyspark_iceberg_crypto").rglob("*.py"))
        if not {"cli", "demo"}
        & set(path.parts)  # what is wrong with a command line its --help says
        for node in ast.walk(ast.parse(path.read_text()))
    ]


def python_errors() -> list[Message]:
    """Also those of the KMS helpers' tables of vendors' errors, which have words of their own."""
    found = []
    for place, node in python_nodes():
        match node:
            case ast.Call(func=ast.Name(id="Rule"), args=[_, kind, _, problem]):
                text = re.sub(r"\{\w+\}", ANY, python_text(problem))
            case ast.Call(func=ast.Name() | ast.Attribute() as kind, args=[problem, *_]):
                text = python_text(problem)
            case _:
                continue
        name = ast.unparse(kind).rpartition(".")[2].replace("MissingExtra", "Configuration")
        if name.endswith("Error") and hasattr(errors, name):
            found.append(Message(place, name, text))
    return found


def python_literals() -> list[str]:
    return [
        python_text(node)
        for _, node in python_nodes()
        if isinstance(node, (ast.JoinedStr, ast.Constant))
    ]


# ---- the two compared


def has_words(text: str) -> bool:
    """At least two, names of properties and addresses aside."""
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"[\w-]+([.:/]+[\w-]+)+", "", text))) > 1


def test_each_type_has_a_section_and_each_section_a_type() -> None:
    types = {name for name in pyspark_iceberg_crypto.__all__ if name.endswith("Error")}
    assert set(re.findall(r"^## (\w+Error)$", PAGE, re.MULTILINE)) == types
    java = {path.stem for path in java_files() if path.stem.endswith("Exception")}
    assert java == set(_PYTHON_TYPES)
    for exception, kind in _PYTHON_TYPES.items():
        assert f"\n## {kind.__name__}\n\nIn Java `{exception}`" in PAGE


def test_each_error_in_the_code_names_its_section() -> None:
    for path, kind in ((path, _PYTHON_TYPES.get(path.stem)) for path in java_files()):
        if kind is not None:
            assert f"docs/errors.md#{kind.__name__.lower()}" in path.read_text(), path
    for kind in {getattr(pyspark_iceberg_crypto, name) for name in pyspark_iceberg_crypto.__all__}:
        if isinstance(kind, type) and issubclass(kind, errors.IcebergCryptoError):
            assert kind("").url.endswith(f"docs/errors.md#{kind.__name__.lower()}")
            assert f"docs/errors.md#{kind.__name__.lower()}" in str(kind.__doc__), kind


def test_an_error_of_a_subclass_leads_to_the_section_of_its_type() -> None:
    class Own(errors.KeyNotFoundError):
        pass

    assert Own("no key").url == errors.KeyNotFoundError("no key").url


def test_each_heading_is_there_once_and_has_its_three_lines() -> None:
    titles = [(heading.kind, heading.title) for heading in headings()]
    assert len(titles) == len(set(titles))
    for heading in headings():
        starts = [line.partition(":")[0] for line in heading.lines if line.startswith("- ")]
        assert starts == ["- **When**", "- **Data**", "- **Do**"], heading


def test_each_heading_is_a_message_of_the_code() -> None:
    said = (
        [one.text for one in java_errors() + python_errors()] + java_literals() + python_literals()
    )
    gone = [
        heading.title
        for heading in of_this_project()
        if not any(is_of(heading, text) for text in said)
    ]
    assert not gone, "no error says this any more: change the heading, or remove it"


def test_each_message_has_a_heading() -> None:
    said = [one for one in java_errors() + python_errors() if one.kind not in OF_ONE_MESSAGE]
    assert {one.place for one in said if not has_words(one.text)} == set(WORDS_OF_CALLERS)
    missing = [
        one
        for one in said
        if has_words(one.text)
        and not any(
            heading.kind == one.kind and is_of(heading, one.text) for heading in of_this_project()
        )
    ]
    assert not missing, "give each a heading in docs/errors.md, in the section of its type"
