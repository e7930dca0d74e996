"""The options that follow ``--kms``: a KMS's own settings, made of its class's fields and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import click

from pyspark_iceberg_crypto.cli._shared import pairs
from pyspark_iceberg_crypto.kms import BY_TYPE, Kms

_MISSING = (None, "", (), dataclasses.MISSING, inspect.Parameter.empty)


class KmsCommand(click.Command):
    """A command with the options of the KMS that ``--kms`` names; --help shows them too.

    Args:
        method: a method of the KMS whose keyword arguments become options as well.
    """

    def __init__(self, *args: Any, method: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.method = method

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, once it is known which KMS's options there are."""
        name = _named(args)
        if name in BY_TYPE:
            ctx.meta["kms"] = name
        elif not ctx.resilient_parsing and not {"-h", "--help"} & set(
            args
        ):  # before options of a KMS are taken for unknown ones
            option = _kms_option()
            if name is None:
                raise click.MissingParameter(ctx=ctx, param=option)
            option.type.convert(name, option, ctx)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return ``--kms``, the KMS's options and the command's own."""
        name = ctx.meta.get("kms")
        settings = _settings(BY_TYPE[name], self.method) if name else []
        options = [setting.option() for setting in settings]
        return [_kms_option(), *options, *super().get_params(ctx)]


def make(options: Mapping[str, Any], method: str = "") -> tuple[Kms, dict[str, Any]]:
    """Make the KMS that a command's options name, and what they give to one of its methods.

    Raises:
        ConfigurationError: the KMS refuses a setting.
    """
    made = BY_TYPE[options["kms"]]
    given: dict[str, dict[str, Any]] = {"field": {}, "argument": {}}
    for setting in _settings(made, method):
        value = options[setting.key]
        if value not in _MISSING:
            example = f"--{setting.name.replace('_', '-')} department=sales"
            given[setting.of][setting.name] = pairs(value, example) if setting.is_map else value
    return made(**given["field"]), given["argument"]


def _kms_option() -> click.Option:
    return click.Option(
        ["--kms"],
        type=click.Choice(list(BY_TYPE)),
        required=True,
        help="The kind of KMS. With it, --help shows its own options.",
    )


@dataclasses.dataclass(frozen=True)
class _Setting:
    """A field of a KMS's class, or a keyword argument of one of its methods."""

    of: str
    name: str
    type: str
    default: Any
    required: bool
    help: str

    @property
    def key(self) -> str:
        """What click calls its value."""
        return f"{self.of}_{self.name}"

    @property
    def is_map(self) -> bool:
        """Whether it is given as NAME=VALUE, several times."""
        return re.search(r"\b(Mapping|dict)\b", self.type) is not None

    def option(self) -> click.Option:
        """Make an option of it."""
        flag = self.name.replace("_", "-")
        if self.type == "bool":
            flags = f"--{flag}/--no-{flag}" if self.default else f"--{flag}"
            return click.Option([self.key, flags], is_flag=True, default=None, help=self.help)
        shown = self.help
        if not self.is_map and self.default not in _MISSING:
            shown += f"  [default: {self.default}]"
        return click.Option(
            [self.key, f"--{flag}"],
            type=int if re.fullmatch(r"int( \| None)?", self.type) else str,
            required=self.required,
            multiple=self.is_map,
            metavar="NAME=VALUE" if self.is_map else None,
            help=shown,
        )


def _settings(kms: type[Kms], method: str) -> list[_Setting]:
    found = list(_fields(kms))
    taken = {setting.name for setting in found}
    if method:
        found += [setting for setting in _arguments(kms, method) if setting.name not in taken]
    return found


def _fields(kms: type[Kms]) -> Iterator[_Setting]:
    told = _described(inspect.getdoc(kms), "Attributes")
    for field in dataclasses.fields(kms):  # type: ignore[arg-type]
        required = field.default in _MISSING[3:] and field.default_factory in _MISSING[3:]
        kind = _text(field.type)
        yield _Setting("field", field.name, kind, field.default, required, told.get(field.name, ""))


def _arguments(kms: type[Kms], method: str) -> Iterator[_Setting]:
    function = getattr(kms, method)
    told = _described(inspect.getdoc(function), "Args")
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            kind = _text(parameter.annotation)
            yield _Setting("argument", name, kind, parameter.default, False, told.get(name, ""))


def _text(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _described(docstring: str | None, section: str) -> dict[str, str]:
    """Read what a Google-style docstring says of each name in a section."""
    _, _, rest = (docstring or "").partition(f"\n{section}:\n")
    found: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            break  # the next section
        entry = re.match(r" {4}(\w+)(?: \([^)]*\))?: (.*)", line)
        if entry:
            name, found[entry[1]] = entry[1], entry[2]
        elif name and line.strip():
            found[name] += " " + line.strip()
    return {name: _sentence(text.replace("``", "")) for name, text in found.items()}


def _sentence(text: str) -> str:
    """Begin with a capital letter, unless the first word is a value such as aes256-gcm96."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+[ ,;:.]", text) else text


def _named(args: list[str]) -> str | None:
    """Find what ``--kms`` says, before the options that depend on it are known."""
    for word, following in pairwise([*args, ""]):
        if word == "--kms":
            return following or None
        if word.startswith("--kms="):
            return word.partition("=")[2]
    return None
