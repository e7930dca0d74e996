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
_KMS_CLASSES = [kind.__name__ for kind in BY_TYPE.values()]

_NAME = r"`(?:[^`]|``)*`|\w+"
_QUOTED = r"'(?:[^'\\]|\\.)*'"
_ARGUMENT = rf"(\w+) => ({_QUOTED}|true|false|\.\.\.)"
_CALL = re.compile(
    rf"CALL (<catalog>|{_NAME})\.system\.(\w+)\(({_ARGUMENT}(?:, {_ARGUMENT})*)\)", re.DOTALL
)
_INNER = rf"(?:{_QUOTED}|[^()'])*"
_OUTER = rf"(?:{_QUOTED}|[^()']|\({_INNER}\))*"
_STATEMENT = re.compile(  # any CALL, whatever its arguments: no word in it is translated alone
    rf"(CALL (?:<catalog>|{_NAME})\.system\.\w+\((?:{_QUOTED}|[^()']|\({_OUTER}\))*\))", re.DOTALL
)
_OPERATIONS = "|".join(COMMANDS)
_BARE = re.compile(rf"(?<![\w.'`/=-])({_OPERATIONS})(?:\((\w+)=True\))?(?![\w'`(/-]|\.\w| =>|=)")
_OF_KMS = re.compile(
    rf"(?:(?:pyspark_iceberg_crypto\.)?({'|'.join(_KMS_CLASSES)})(?:\(\.\.\.\))?\.|(?<![\w.]))"
    rf"(?:({'|'.join(_KMS_COMMANDS)})\((?:'([^']*)'|[^()]*)\)|(rotate_key)\b(?!\())"
)
_CONFIGURE = r"configure_spark(?:\([^()]*\))?"
_PHRASES = (
    (re.compile(r"\bCall (?=`iceberg-crypto)"), "Run "),
    (re.compile(r"\bcall (?=`iceberg-crypto)"), "run "),
    (re.compile(rf"(?:, as|;|, or with) {_CONFIGURE}(?: does| adds it by itself)?"), ""),
    (re.compile(rf"(set (?:it|the catalog) up)(?::| with) {_CONFIGURE}(?: in Python)?"), r"\1 in the profile"),
    (re.compile(r"\breport\.\w+ has (?:each \w+|them)"), "--output json has more"),
)  # fmt: skip
_OF_COMMANDS = (
    (re.compile(r"\bcall (?=it with )"), "run "),
    (re.compile(r"\bwithout dry_run\b"), "with --confirm"),
    (re.compile(r"\bwith dry_run => true\b"), "without --confirm"),
    (re.compile(r"\(dry_run\)"), "(without --confirm)"),
)
_OPTION = re.compile(r"(?<![\w.'/-])(\w+)(?: => |=)(?:[Tt]rue|(array\('\.\.\.'\)))(?![\w']|\.\w)")


def spoken(text: str) -> str:
    """Say something in the words of the command line.

    Arguments without a call (``confirm => true``) are said as options only where a command is named and no SQL is left,
    to which they could belong.
    """
    pieces = _STATEMENT.split(text)  # in turns other words, and statements
    commands = list(map(_command, pieces[1::2]))
    pieces[1::2] = [said or sql for said, sql in zip(commands, pieces[1::2], strict=True)]
    pieces[::2] = [_without_calls(words) for words in pieces[::2]]
    found = "".join(pieces)
    if None not in commands and "iceberg-crypto " in found:
        for pattern, words in _OF_COMMANDS:
            found = pattern.sub(words, found)
        found = _OPTION.sub(_option, found)
    whole = re.fullmatch(r"(`+)(iceberg-crypto (?:(?!(?<!`)\1(?!`)).)*)\1", found)
    return whole[2] if whole else found


def _without_calls(text: str) -> str:
    found = _BARE.sub(_mentioned, _OF_KMS.sub(_of_kms, text))
    for pattern, words in _PHRASES:
        found = pattern.sub(words, found)
    return found


def _command(statement: str) -> str | None:
    """Return the command that does what a statement of SQL does; None if none does."""
    call = _CALL.fullmatch(statement)
    if call is None:
        return None
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
    option = _all_options().get(argument[1])
    if option is None or option.is_flag == bool(argument[2]):
        return argument[0]
    return option.opts[0] if option.is_flag else f"{option.opts[0]} URI"


def _mentioned(name: re.Match[str]) -> str:
    option = _all_options().get(name[2] or "")
    return _quoted(COMMANDS[name[1]], option.opts[0] if option else "")


def _of_kms(call: re.Match[str]) -> str:
    """Return the command for the KMS of the profile: with a KMS's name it would need that one's options."""
    if call[2] == "create" and not call[1]:
        return call[0]
    key = shlex.quote(call[3]) if call[3] else "" if call[4] else "NAME"
    return _quoted("kms", _KMS_COMMANDS[call[2] or call[4]], key)


@cache
def _options(words: str) -> dict[str, click.Option]:
    """Return the options of a command by the names of its parameters, which are those of the operation."""
    from pyspark_iceberg_crypto.cli import main

    command = main.get_command(click.Context(main), words.split()[0])
    params = command.params if command is not None else []
    return {str(one.name): one for one in params if isinstance(one, click.Option)}


@cache
def _all_options() -> dict[str, click.Option]:
    """Return the options of all these commands by the names of their parameters."""
    return {name: one for words in COMMANDS.values() for name, one in _options(words).items()}
