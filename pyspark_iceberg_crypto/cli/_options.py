"""The options that follow ``--kms``: a KMS's own settings, and the choices for a new key or version."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import click

from pyspark_iceberg_crypto.cli._help import Command
from pyspark_iceberg_crypto.cli._shared import pairs
from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.kms import BY_TYPE, Kms
from pyspark_iceberg_crypto.kms._settings import settings


class KmsCommand(Command):
    """A command with the options of the KMS that ``--kms`` names; --help shows them too.

    Args:
        method: a method of the KMS whose keyword arguments are options as well.
        kms: the only KMS there is, for a command that does not ask for it.
    """

    kms_help = "Where the catalog's master keys are. With it, --help shows the KMS's own options."

    def __init__(self, *args: Any, method: str = "", kms: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.method = method
        self.kms = kms

    @property
    def kms_option(self) -> click.Option:
        """The option that names the KMS."""
        return click.Option(["--kms"], type=click.Choice(list(BY_TYPE)), help=self.kms_help)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, once it is known which KMS's options there are."""
        name = self.kms or named(args, "--kms")
        if name in BY_TYPE:
            ctx.meta["kms"] = name
        elif name is not None and not ctx.resilient_parsing and not {"-h", "--help"} & set(args):
            # Said before the options of a KMS are taken for unknown ones.
            self.kms_option.type.convert(name, self.kms_option, ctx)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return ``--kms``, the KMS's options and the command's own."""
        asked = [] if self.kms else [self.kms_option]
        return [*asked, *self.kms_options(ctx), *super().get_params(ctx)]

    def sections(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options of the KMS, below the command's own."""
        return {"KMS options": [*([] if self.kms else [self.kms_option]), *self.kms_options(ctx)]}

    def kms_options(self, ctx: click.Context) -> list[click.Option]:
        """Return the options of the KMS that is named."""
        name = ctx.meta.get("kms")
        return [*_settings(BY_TYPE[name]), *arguments(name, self.method)] if name else []

    def invoke(self, ctx: click.Context) -> Any:
        """Name the KMS where the command does."""
        if self.kms:
            ctx.params["kms"] = self.kms
        return super().invoke(ctx)


def arguments_of(kms: Kms, options: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Return the keyword arguments for a method of a KMS among a command's options."""
    return {str(o.name): options[str(o.name)] for o in arguments(kms.kms_type, method)}


def made_kms(options: Mapping[str, Any]) -> Kms:
    """Make the KMS that a command's options name.

    Raises:
        ConfigurationError: the KMS refuses a setting.
    """
    name = options["kms"]
    given = {}
    for option in _settings(BY_TYPE[name]):
        key = str(option.name)
        if option.required or options[key] not in (None, "", ()):
            example = f"{option.opts[0]} department=sales"
            given[key] = pairs(options[key], example) if option.multiple else options[key]
    return BY_TYPE[name](**given)


def kms_of(texts: Mapping[str, str], where: str) -> Kms:
    """Make a KMS of settings as texts, by the names of the command line's options.

    Args:
        texts: "type" names the KMS; a map's entries have the map's name before a dot.
        where: where they stand, for errors.

    Raises:
        ConfigurationError: a setting is missing, unknown or wrong, or the KMS refuses it.
    """
    name = texts.get("type", "")
    if name not in BY_TYPE:
        said = (
            f"the kms of {where} has the type {name!r}"
            if name
            else f"the kms of {where} has no type"
        )
        raise ConfigurationError(said, f"one of {', '.join(BY_TYPE)}")
    known = {option.opts[0].removeprefix("--"): option for option in _settings(BY_TYPE[name])}
    given: dict[str, Any] = {}
    for key, text in texts.items():
        head, _, rest = key.partition(".")
        option = known.get(head)
        if key == "type":
            continue
        if option is None or bool(rest) != option.multiple:
            hint = f"{name} has {', '.join(known)}; a secret stands in a variable or file that one names"
            raise ConfigurationError(f"the kms of {where} has the setting {key!r}", hint)
        if rest:
            given.setdefault(str(option.name), {})[rest] = text
            continue
        try:
            given[str(option.name)] = option.type.convert(text, option, None)
        except click.BadParameter as error:
            said = f"{key} of the kms of {where}: {error.message}"
            raise ConfigurationError(said, str(option.help)) from error
    missing = [n for n, option in known.items() if option.required and option.name not in given]
    if missing:
        raise ConfigurationError(
            f"the kms of {where} has no {missing[0]}", str(known[missing[0]].help)
        )
    return BY_TYPE[name](**given)


def _settings(kms: type[Kms]) -> list[click.Option]:
    return [
        _option(field.name, dict if field.default_factory is dict else field.default, known.help)
        for field, known in settings(kms).values()
    ]


def arguments(kms: str, method: str) -> list[click.Option]:
    """Return the options for the keyword arguments of a method, by the KMS's type, as its documentation has them."""
    if not method:
        return []
    found = getattr(BY_TYPE[kms], method)
    said = dict(re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", inspect.getdoc(found) or "", re.M))
    return [
        _option(
            one.name,
            one.default,
            _sentence(said.get(one.name, one.name)),
            "int" in str(one.annotation),
        )
        for one in inspect.signature(found).parameters.values()
        if one.kind is one.KEYWORD_ONLY
    ]


def _sentence(text: str) -> str:
    words = " ".join(text.split())
    return words[:1].upper() + words[1:]


def _option(name: str, default: Any, help: str, is_number: bool = False) -> click.Option:  # noqa: A002
    """Make the option of a setting or an argument, of the type of its default; dict stands for a map."""
    flag = name.replace("_", "-")
    if isinstance(default, bool):
        flags = f"--{flag}/--no-{flag}" if default else f"--{flag}"
        return click.Option([name, flags], is_flag=True, default=default, help=help)
    is_map = default is dict
    has_default = not is_map and default is not dataclasses.MISSING
    given: dict[str, Any] = {"default": default} if has_default else {}
    return click.Option(
        [name, f"--{flag}"],
        type=int if is_number or isinstance(default, int) else str,
        required=not is_map and not has_default,
        multiple=is_map,
        metavar="NAME=VALUE" if is_map else None,
        show_default=True,
        help=help,
        **given,
    )


def named(args: list[str], option: str) -> str | None:
    """Find what an option says, before the options that depend on it are known."""
    for word, following in pairwise([*args, ""]):
        if word == option:
            return following or None
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None
