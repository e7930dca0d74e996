"""docs/errors.md has a heading for each message of an error in the code, and none for a message that is gone."""

import ast
import re
from collections import ChainMap
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
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

OF_ANY_TYPE = "Errors"  # the page's first section says how they all may begin and end
ICEBERGS = {"CommitFailedException": "Errors of Iceberg, Parquet and Spark"}  # made here, too

# Methods that make an error of one of their arguments: the type, which argument, and what the error says then.
MAKERS = {
    ("AllowedKeyIds.java", "wrong"): ("ConfigurationError", 1, "Property ... {}: '...'"),
    ("AwsErrors.java", "sessionEnded"): ("LoginFailedError", 0, "{}"),
    ("AzureLogin.java", "notNow"): ("KmsUnavailableError", 0, "{}"),
    ("NamespaceKeys.java", "notKept"): ("NotSupportedError", 0, "... {}"),
    ("OrcColumnKeys.java", "unusable"): ("ConfigurationError", 1, "Key provider ...=... {}"),
    ("ParquetFooterCheck.java", "refusal"): ("NotSupportedError", 0, "file ... {}"),
    ("VaultHttp.java", "unavailable"): ("KmsUnavailableError", 1, "Vault at ... {} (HTTP ...)"),
}
MADE = "what the callers of one of these say"
CALLED_AFTER = ("return", "throw", "->", "?", ":", ".")

# What parameters are: the literals of this kind in that file.
PARAMETERS = {
    ("AwsErrors.java", "problem"): ("AwsErrors.java", "%s could not %s with key '%s'"),
    ("Pkcs11Errors.java", "problem"): ("Pkcs11Errors.java", "%s could not %s"),
    ("VaultConfig.java", "problem"): ("HttpsAddress.java", r"\w+ .*"),
}

# What a Rule's subject is called, where its message says little else.
SUBJECTS = {("_tool.py", "what"): f"PKCS#11 {ANY}"}

# The problems whose words are elsewhere.
WORDS_ELSEWHERE = {
    (
        "AllowedKeyIds.java",
        """String.format("Property %s %s: '%s'",EncryptionProperties.ALLOWED_KEY_IDS,problem,list)""",
    ): MADE,
    (
        "AwsErrors.java",
        """problem+(hasModule?"":", or the profile has an sso_session, and the AWS SDK's module for"""
        """ those is not"+" on the class path")""",
    ): MADE,
    ("AzureLogin.java", "what.strip()"): MADE,
    ("BadWrappedKeyException.java", "problem"): "ofAnswer, whose callers are looked at instead",
    ("CatalogSettings.java", '"Property "+prefix+refusal.problem()'): "AllowedKeyIds has them",
    ("CatalogTables.java", "problem.toString()"): "a loop completes 'Nothing was verified: ...'",
    ("KeyedInspection.java", 'String.format("%s: %s",location,problem.words())'): (
        "FileKind: 'it is not encrypted: it starts with ...'"
    ),
    ("ManifestsWithLengths.java", '"Another commit has replaced manifest %s of %s"'): (
        "TableRepair: 'nothing was repaired: another commit was made since ...'"
    ),
    ("MetadataInMemory.java", '"The metadata has changed"'): "no user sees it",
    ("NamespaceKeys.java", 'EncryptionProperties.KEY_ID+" "+problem'): MADE,
    ("NotAsWritten.java", "problem"): "a part of '... is not what was written: ...'",
    (
        "OrcColumnKeys.java",
        'String.format("Key provider %s=%s %s",OrcSettings.PROVIDER,settings.provider(),what)',
    ): MADE,
    ("ParquetFooterCheck.java", '"file "+location+" "+problem'): MADE,
    (
        "GroupSize.java",
        """String.format("%s is '%s'",name,value.trim())""",
    ): "names only the setting",
    ("TableReencryption.java", "e.getMessage()"): "Iceberg's or Spark's own words",
    ("VaultHttp.java", 'String.format("%s %s %s",config,what,told(answer))'): MADE,
    ("_one.py", "f'{location}: {words}'"): "FileKind: 'it is not encrypted: it starts with ...'",
    ("_allowed.py", "f\"Property {PROPERTY} {problem}: '{listed}'\""): "as of AllowedKeyIds",
    ("_expected.py", "f'Table {self.table}: file {self.location} {problem}'"): MADE,
    ("_session.py", "first_line(error)"): "an error of Spark or Java that doctor reports",
    ("_session.py", "problem"): "the same",
    (
        "values.py",
        "f'{argument}={value!r} of {procedure}'",
    ): "only names: 'name=5 of create_value_key'",
}

# Headings of few words that are the beginning of several messages.
BEGINNINGS = {"not finished: ...": "one entry on all that purge_plaintext leaves to be done"}

# Headings of messages whose words are not where the error is made.
OF_OTHER_LITERALS = {
    "... failed verification",
    "... is not encrypted as a whole",
    "... was not fully verified",
    "Nothing was verified: these tables to leave out are not among those to verify: ...",
    "it has no encryption.key-id: it is not encrypted, and has no keys",
    "it is not encrypted: it starts with ...",
    "the call was cancelled: ...",
}


class Heading(NamedTuple):
    kind: str
    title: str
    lines: list[str]

    @property
    def is_of_python(self) -> bool:
        return any(line.startswith("- **When**: Python:") for line in self.lines)


class Message(NamedTuple):
    """What an error that is thrown at one place says."""

    place: str
    kind: str  # the Python type, for Java's errors, too
    text: str
    expression: str  # that it is the value of


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


@cache
def of_this_project() -> list[Heading]:
    return [
        heading
        for heading in headings()
        if heading.kind.endswith("Error")
        or heading.title.startswith(tuple(map("`{}".format, ICEBERGS)))
    ]


@cache
def words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z0-9]{2,}", without_constants(text))


def without_constants(text: str) -> str:
    """Without names of properties, which the code has in constants."""
    return re.sub(r"\b[a-z-]+(\.[a-z-]+)+(=\w+)?", "...", text)


def messages(heading: Heading) -> list[str]:
    """What is in back quotes, and not what follows: "`...`, `...`: CODE"."""
    quoted = re.match(r"`[^`]+`(?:, `[^`]+`)*", heading.title)
    return re.findall(r"`([^`]+)`", quoted[0]) if quoted else []


@cache
def fixed(message: str) -> list[str]:
    """The fixed words of a heading's message."""
    parts = [part.strip("' ") for part in without_constants(message).split("...")]  # as !r quotes
    return [part for part in parts if part]


@cache
def pattern(message: str) -> re.Pattern[str]:
    """A heading's fixed words, as whole words, in their order."""
    return re.compile(
        ".*?".join(
            r"(?<!\w)" * part[0].isalnum() + re.escape(part) + r"(?!\w)" * part[-1].isalnum()
            for part in fixed(message)
        ),
        re.DOTALL,
    )


def is_of(message: str, text: str) -> bool:
    """Whether an error has the fixed words of a heading's message; where these are few, no others."""
    if not pattern(message).search(text):
        return False
    few = len(words(message)) < 3 and message not in BEGINNINGS
    return not few or words(message) == words(text)


# ---- Java

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])+\'|::|->|\w+|\s+|.', re.DOTALL
)
PLACEHOLDER = re.compile(r"%[\d$,.]*(?:[sdxX]|t\w)")


def java_tokens(code: str) -> list[str]:
    return [
        token
        for token in TOKEN.findall(code)
        if not token.isspace() and not token.startswith(("//", "/*"))
    ]


@cache
def java_files() -> dict[Path, list[str]]:
    """The tokens of each file of main."""
    return {
        path: java_tokens(path.read_text())
        for path in sorted((ROOT / "jvm").glob("**/src/main/java/**/*.java"))
    }


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


def split(tokens: list[str], at: str) -> list[list[str]]:
    """At a token, but not within parentheses."""
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in "([{") - (token in ")]}")
        if token == at and not depth:
            found.append([])
        else:
            found[-1].append(token)
    return found


def joined(parts: Iterable[list[str]]) -> list[str]:
    """Each text that there can be, with what can be at each place of it."""
    return [re.sub(f"{ANY}+", ANY, "".join(way)) for way in product(*parts)]


def java_texts(tokens: list[str], variables: Mapping[str, list[str]]) -> list[str]:
    """The literals of an expression, with ANY for what is between them: a text for each branch."""
    _condition, *branches = split(tokens, "?")
    if branches:
        body, *other = split(join(branches, "?"), ":")
        return java_texts(body, variables) + java_texts(join(other, ":"), variables)
    return joined(operand(one, variables) for one in split(tokens, "+"))


def join(parts: list[list[str]], by: str) -> list[str]:
    return [token for part in parts for token in [*part, by]][:-1]


def operand(tokens: list[str], variables: Mapping[str, list[str]]) -> list[str]:
    """The same of what is between two "+"."""
    if tokens[:4] == ["String", ".", "format", "("] and tokens[-1] == ")":
        given = [java_texts(one, variables) for one in arguments(tokens[3:])]
        return [text for one in given[0] for text in formatted(one, given[1:])]
    if "orElse" in tokens and tokens[-1] == ")":
        i = tokens.index("orElse")
        return java_texts(tokens[: i - 1], variables) + java_texts(tokens[i + 2 : -1], variables)
    parts: list[list[str]] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token == "(":
            given = arguments(tokens[i:])
            texts = [java_texts(one, variables) for one in given]
            if i:  # of a call: single words are not said
                said = [[text if len(words(text)) > 1 else ANY for text in one] for one in texts]
                texts = [part for one in said for part in ([ANY], one)]
            parts += texts
            i += sum(map(len, given)) + len(given)
        elif token.startswith('"') and token != '"""':
            parts.append([token[1:-1].replace('\\"', '"').replace("\\\\", "\\")])
        else:
            parts.append(variables.get(token, [ANY]))
        i += 1
    return joined(parts)


def formatted(text: str, given: list[list[str]]) -> list[str]:
    """What String.format makes of a format and what its arguments can be."""
    first, *between = PLACEHOLDER.split(text)
    values = given if len(given) == len(between) else [[""]] * len(between)
    parts = [
        [f"{ANY}{one}{ANY}{part}" for one in value]
        for value, part in zip(values, between, strict=True)
    ]
    return joined([[first], *parts])


@cache
def java_types() -> dict[str, str]:
    """The heading of each exception's section."""
    types = {name: kind.__name__ for name, kind in _PYTHON_TYPES.items()} | ICEBERGS
    for tokens in java_files().values():
        for before, name, extends, parent in zip(
            tokens, tokens[1:], tokens[2:], tokens[3:], strict=False
        ):
            if (before, extends) == ("class", "extends") and parent in types:
                types.setdefault(name, types[parent])
    return types


@cache
def java_errors() -> list[Message]:
    found = []
    for path, tokens in java_files().items():
        place = path.name
        variables = ChainMap(parameters(place))  # of each block
        for i, token in enumerate(tokens[:-3]):
            if token in "{}":
                variables = variables.new_child() if token == "{" else variables.parents
            elif token == "String" and tokens[i + 2] == "=":
                value = tokens[i + 3 : tokens.index(";", i)]
                variables[tokens[i + 1]] = java_texts(value, variables)
            made = thrown(place, tokens, i)
            if made is not None:
                kind, problem, whole = made
                found += [
                    Message(
                        place,
                        kind,
                        PLACEHOLDER.sub(ANY, whole.replace("{}", text)),
                        "".join(problem),
                    )
                    for text in java_texts(problem, variables)
                ]
    return found


def parameters(place: str) -> dict[str, list[str]]:
    """The words of the parameters of a file's methods."""
    found = {}
    for (of, name), (file, kind) in PARAMETERS.items():
        if of == place:
            tokens = next(tokens for path, tokens in java_files().items() if path.name == file)
            literals = [one[1:-1] for one in tokens if re.fullmatch(f'"{kind}"', one)]
            found[name] = [PLACEHOLDER.sub(ANY, one) for one in literals]
            assert literals, f"{file} has no {kind} any more"
    return found


def thrown(place: str, tokens: list[str], i: int) -> tuple[str, list[str], str] | None:
    """The type and the problem of an error that a token makes, and what the error says of it."""
    token, before, after = tokens[i], tokens[i - 1], tokens[i + 1]
    kind = java_types().get(token)
    if kind is not None and before == "new" and after == "(":
        given = arguments(tokens[i + 1 :])
        if token in ICEBERGS:
            return kind, next(one for one in given if one[0].startswith('"')), f"{token}: {{}}"
        return kind, given["ProblemCode" in given[0] or len(given) == 4], "{}"
    if (before, token, after) == (".", "withProblem", "("):
        return OF_ANY_TYPE, arguments(tokens[i + 1 :])[0], "{}"
    if kind is not None and tokens[i + 2] == "ofAnswer":
        return kind, arguments(tokens[i + 3 :])[0], "{}"
    if (place, token) in MAKERS and after == "(" and before in CALLED_AFTER:
        kind, argument, whole = MAKERS[place, token]
        given = arguments(tokens[i + 1 :])
        if len(given) > argument:  # not one that overloads it
            return kind, given[argument], whole.replace("...", ANY)
    return None


def java_literals() -> list[str]:
    """Those that "+" joins are one."""
    found = []
    for tokens in java_files().values():
        group: list[str] = []
        for token in tokens:
            if token[0] == '"' or (token == "+" and group):
                group.append(token)
            elif group:
                found += joined(operand(one, {}) for one in split(group, "+"))
                group = []
    return found


# ---- Python


def python_texts(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return joined(map(python_texts, values))
        case ast.FormattedValue(value=ast.IfExp() as value):
            return python_texts(value)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return joined([python_texts(left), python_texts(right)])
        case ast.IfExp(body=body, orelse=orelse):
            return python_texts(body) + python_texts(orelse)
    return [ANY]


@cache
def python_nodes() -> list[tuple[str, ast.AST]]:
    return [
        (path.name, node)
        for path in sorted((ROOT / "pyspark_iceberg_crypto").rglob("*.py"))
        if not {"cli", "demo"}
        & set(path.parts)  # what is wrong with a command line its --help says
        for node in ast.walk(ast.parse(path.read_text()))
    ]


def with_subject(place: str, text: str) -> str:
    """What a Rule's text says, whose names are filled in later."""
    return re.sub(r"\{(\w+)\}", lambda name: SUBJECTS.get((place, name[1]), ANY), text)


@cache
def python_errors() -> list[Message]:
    """Also those of the KMS helpers' tables of vendors' errors, which have words of their own."""
    found = []
    for place, node in python_nodes():
        match node:
            case ast.Call(func=ast.Name(id="Rule"), args=[_, kind, _, problem]):
                texts = [with_subject(place, text) for text in python_texts(problem)]
            case ast.Call(func=ast.Name() | ast.Attribute() as kind, args=[problem, *_]):
                texts = python_texts(problem)
            case _:
                continue
        name = ast.unparse(kind).rpartition(".")[2].replace("MissingExtra", "Configuration")
        if name.endswith("Error") and hasattr(errors, name):
            found += [Message(place, name, text, ast.unparse(problem)) for text in texts]
    return found


def python_literals() -> list[str]:
    return [
        text
        for _, node in python_nodes()
        if isinstance(node, (ast.JoinedStr, ast.Constant))
        for text in python_texts(node)
    ]


# ---- the two compared


def is_found(one: Message) -> bool:
    """Whether a heading of its type has its words; one of Python's has no message of Java's."""
    if one.kind == OF_ANY_TYPE:
        beginning = PAGE.partition("\nIn the headings")[2].partition("\n## ")[0]
        return any(is_of(message, one.text) for message in re.findall("`([^`]+)`", beginning))
    return any(
        is_of(message, one.text)
        for heading in of_this_project()
        if heading.kind == one.kind and not (heading.is_of_python and one.place.endswith(".java"))
        for message in messages(heading)
    )


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
    said: dict[str, set[str]] = {}
    for one in java_errors() + python_errors():
        said.setdefault(one.kind, set()).add(one.text)
    elsewhere = {
        message
        for heading in of_this_project()
        for message in messages(heading)
        if not any(is_of(message, text) for text in said.get(heading.kind, ()))
    }
    assert elsewhere == OF_OTHER_LITERALS, "no error says this: change the heading, or remove it"
    literals = java_literals() + python_literals()
    assert not [
        message for message in elsewhere if not any(is_of(message, text) for text in literals)
    ]


def test_each_message_has_a_heading() -> None:
    said = [one for one in java_errors() + python_errors() if one.kind not in OF_ONE_MESSAGE]
    assert set(WORDS_ELSEWHERE) <= {(one.place, one.expression) for one in said}
    missing = [
        one
        for one in said
        if (one.place, one.expression) not in WORDS_ELSEWHERE and not is_found(one)
    ]
    assert not missing, "give each a heading in docs/errors.md, in the section of its type"


def test_a_new_message_has_no_heading_yet() -> None:
    for text in (
        "'k' is not on the moon",
        "'k' cannot be on the moon",
        f"Property {ANY} is '{ANY}', which is on the moon",
        f"{ANY} needs a moon",
        "the moon is empty",
    ):
        assert not is_found(Message("New.java", "ConfigurationError", text, ""))


def test_an_expression_is_all_that_it_can_be() -> None:
    code = 'String.format("%s is %s", name, far ? "far" : "near") + found.orElse(", and new")'
    assert java_texts(java_tokens(code), {}) == [
        f"{ANY} is {ANY}far{ANY}",
        f"{ANY} is {ANY}far{ANY}, and new",
        f"{ANY} is {ANY}near{ANY}",
        f"{ANY} is {ANY}near{ANY}, and new",
    ]
