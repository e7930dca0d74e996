"""Advice of Java and Python, which name procedures and functions, in the words of the command line.

What a command cannot do stays as it is: SQL, which `spark-sql` takes.
"""

from __future__ import annotations

import re
import shlex
from functools import cache

import click

from pyspark_iceberg_crypto import _names
from pyspark_iceberg_crypto.kms import BY_TYPE

# The commands for operations, by the names that SQL and Python have for them. A test compares these with Java's.
COMMANDS = {
    "decrypt_table": "decrypt",
    "encrypt_table": "encrypt",
    "encryption_keys": "keys",
    "inspect_file": "inspect",
    "prune_encryption_keys": "prune",
    "purge_plaintext": "purge",
    "reencrypt_table": "reencrypt",
    "repair_table": "repair",
    "rotate_catalog": "rotate",
    "rotate_kek": "rotate --kek",
    "rotate_master_key": "rotate",
    "verify_catalog": "verify",
    "verify_encryption": "verify",
    "verify_table": "verify",
}
# They change something unless dry_run says otherwise; a command does so with --confirm alone.
_CHANGES_UNLESS_DRY = {"prune", "encrypt", "purge", "reencrypt", "rotate", "rotate --kek"}
_TARGETS = ("table", "name", "path")
_KMS_COMMANDS = {"create": "create-key", "create_key": "create-key", "rotate_key": "rotate-key"}
_KMS_TYPES = {kind.__name__: name for name, kind in BY_TYPE.items()}

_NAME = r"`(?:[^`]|``)*`|\w+"
_VALUE = r"'(?:[^'\\]|\\.)*'|true|false|\.\.\."
_ARGUMENT = rf"(\w+) => ({_VALUE})"
_CALL = re.compile(
    rf"CALL (<catalog>|{_NAME})\.system\.(\w+)\(({_ARGUMENT}(?:, {_ARGUMENT})*)\)", re.DOTALL
)
_OPERATIONS = "|".join(COMMANDS)
_BARE = re.compile(rf"(?<![\w.'`/=-])({_OPERATIONS})(?:\((\w+)=True\))?(?![\w'`(/-]|\.\w| =>|=)")
_OF_KMS = re.compile(
    rf"(?:(?:pyspark_iceberg_crypto\.)?({'|'.join(_KMS_TYPES)})(?:\(\.\.\.\))?\.|(?<![\w.]))"
    rf"(?:({'|'.join(_KMS_COMMANDS)})\((?:'([^']*)'|[^()]*)\)|(rotate_key)\b(?!\())"
)
_CONFIGURE = r"configure_spark(?:\([^()]*\))?"
_PHRASES = (
    (re.compile(r"\bCall (?=`iceberg-crypto|it with )"), "Run "),
    (re.compile(r"\bcall (?=`iceberg-crypto|it with )"), "run "),
    (re.compile(rf"(?:, as|;|, or with) {_CONFIGURE}(?: does| adds it by itself)?"), ""),
    (re.compile(rf"(set (?:it|the catalog) up)(?::| with) {_CONFIGURE}(?: in Python)?"), r"\1 in the profile"),
    (re.compile(rf"{_CONFIGURE}(?: in Python)?"), "the profile"),
    (re.compile(r"\breport\.\w+ has (?:each \w+|them)"), "--output json has more"),
    (re.compile(r"\bwithout dry_run\b"), "with --confirm"),
    (re.compile(r"\bdry_run => true\b"), "the command without --confirm"),
)  # fmt: skip
_OPTION = re.compile(r"\b(\w+)(?: => |=)(?:[Tt]rue|(array\('\.\.\.'\)))")


def spoken(text: str) -> str:
    """Say something in the words of the command line."""
    found = _CALL.sub(lambda call: _command(call) or call[0], text)
    found = _BARE.sub(_mentioned, _OF_KMS.sub(_of_kms, found))
    for pattern, words in _PHRASES:
        found = pattern.sub(words, found)
    found = _OPTION.sub(_option, found)
    whole = re.fullmatch(r"(`+)(iceberg-crypto (?:(?!(?<!`)\1(?!`)).)*)\1", found)
    return whole[2] if whole else found


def _command(call: re.Match[str]) -> str | None:
    """Return the command that does what a statement of SQL does; None if none does."""
    catalog, operation, arguments = call[1], call[2], re.findall(_ARGUMENT, call[3], re.DOTALL)
    words = COMMANDS.get(operation)
    if words is None:
        return None
    options = _options(words)
    line, target = words.split(), None
    is_dry = ("dry_run", "true") in arguments
    for name, value in arguments:
        said = "TABLE" if value == "..." else re.sub(r"\\(.)", r"\1", value[1:-1])
        if name in _TARGETS and value[0] in "'.":
            target = said
        elif name in options and value == "true" and options[name].is_flag:
            line.append(options[name].opts[0])
        elif name in options and value[0] == "'" and not options[name].is_flag:
            line += [options[name].opts[0], shlex.quote(said)]
        elif name != "dry_run" and value != "false":
            return None
    if target is None or not (catalog == "<catalog>" or _is_in(target, catalog)):
        return None
    line.insert(1, shlex.quote(target))
    if words in _CHANGES_UNLESS_DRY and not is_dry:
        line.append("--confirm")
    return _quoted(*line)


def _quoted(*words: str) -> str:
    """Return a command as it stands in a sentence; as in Markdown, in more back quotes than are in it."""
    line = f"iceberg-crypto {' '.join(filter(None, words))}"
    marks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return marks + line + marks


def _is_in(target: str, catalog: str) -> bool:
    found = _names.parts(target)
    return found[0] == _names.parts(catalog)[0] and (len(found) > 2 or _names.is_whole(target))


def _option(argument: re.Match[str]) -> str:
    option = _flags().get(argument[1])
    return argument[0] if option is None else f"{option} URI" if argument[2] else option


def _mentioned(name: re.Match[str]) -> str:
    option = _flags().get(name[2] or "", "")
    return _quoted(COMMANDS[name[1]], option)


def _of_kms(call: re.Match[str]) -> str:
    kind = _KMS_TYPES.get(call[1] or "", "")
    if call[2] == "create" and not kind:
        return call[0]
    key = shlex.quote(call[3]) if call[3] else "" if call[4] else "NAME"
    return _quoted("kms", kind, _KMS_COMMANDS[call[2] or call[4]], key)


@cache
def _options(words: str) -> dict[str, click.Option]:
    """Return the options of a command by the names of its parameters, which are those of the operation."""
    from pyspark_iceberg_crypto.cli import main

    command = main.get_command(click.Context(main), words.split()[0])
    params = command.params if command is not None else []
    return {str(one.name): one for one in params if isinstance(one, click.Option)}


@cache
def _flags() -> dict[str, str]:
    """Return all options of these commands by the names of their parameters."""
    return {
        name: option.opts[0]
        for words in COMMANDS.values()
        for name, option in _options(words).items()
    }
