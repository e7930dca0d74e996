"""The options that follow ``--kms``: a KMS's own settings, and the choices for a new key or version."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import click

from pyspark_iceberg_crypto.cli._help import Command
from pyspark_iceberg_crypto.cli._shared import pairs
from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.kms import BY_TYPE, Kms
from pyspark_iceberg_crypto.kms._settings import settings


def _key_bits(help: str) -> click.Option:  # noqa: A002
    return click.Option(["--key-bits"], type=int, default=256, show_default=True, help=help)


_KEY_BITS = _key_bits("The length of the key: 128, 192 or 256.")
_KEY_BITS_OF_VERSION = _key_bits("The length of the new version: 128, 192 or 256.")
# The keyword arguments of methods, by the method and the KMS.
ARGUMENTS: dict[str, dict[str, list[click.Option]]] = {
    "create_key": {
        "aws": [
            click.Option(
                ["--multi-region"],
                is_flag=True,
                help="Make a multi-Region key, which can be replicated to other regions later.",
            ),
            click.Option(
                ["--rotation-days"],
                type=int,
                help="Have AWS rotate the key every 90 to 2560 days.",
            ),
        ],
        "azure": [
            click.Option(
                ["--hardware"],
                is_flag=True,
                help="Keep the key in the vault's HSM (a premium vault has one); a Managed HSM always does.",
            ),
            click.Option(
                ["--key-bits"],
                type=int,
                help="The length of an RSA key: 2048, 3072 (the default) or 4096. The algorithm determines that of an "
                "AES key.",
            ),
        ],
        "gcp": [
            click.Option(
                ["--create-key-ring"],
                is_flag=True,
                help="Make the key ring, too, if it does not exist. It can never be deleted.",
            ),
            click.Option(
                ["--protection-level"],
                default="software",
                show_default=True,
                help="Where the key is kept: software or hsm.",
            ),
        ],
        "hadoop": [_KEY_BITS],
        "keystore": [_KEY_BITS],
        "pkcs11": [_KEY_BITS],
        "vault": [
            click.Option(
                ["--key-type"],
                default="aes256-gcm96",
                show_default=True,
                help="The kind of key: aes256-gcm96, aes128-gcm96 or chacha20-poly1305.",
            )
        ],
    },
    "rotate_key": {"keystore": [_KEY_BITS_OF_VERSION], "pkcs11": [_KEY_BITS_OF_VERSION]},
}


class KmsCommand(Command):
    """A command with the options of the KMS that ``--kms`` names; --help shows them too.

    Args:
        method: a method of the KMS whose keyword arguments are options as well.
        kms: the only KMS there is, for a command that does not ask for it.
    """

    kms_help = "The kind of KMS. With it, --help shows its own options."
    kms_required = True

    def __init__(self, *args: Any, method: str = "", kms: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.method = method
        self.kms = kms

    @property
    def kms_option(self) -> click.Option:
        """The option that names the KMS."""
        choice = click.Choice(list(BY_TYPE))
        return click.Option(["--kms"], type=choice, required=self.kms_required, help=self.kms_help)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, once it is known which KMS's options there are."""
        name = self.kms or named(args, "--kms")
        if name in BY_TYPE:
            ctx.meta["kms"] = name
        elif not ctx.resilient_parsing and not {"-h", "--help"} & set(args):
            # Said before the options of a KMS are taken for unknown ones.
            if name is not None:
                self.kms_option.type.convert(name, self.kms_option, ctx)
            elif self.kms_required:
                raise click.MissingParameter(ctx=ctx, param=self.kms_option)
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
    return [_option(field, known.help) for field, known in settings(kms).values()]


def arguments(kms: str, method: str) -> list[click.Option]:
    """Return the options for the keyword arguments of a method, by the KMS's type."""
    return ARGUMENTS.get(method, {}).get(kms, [])


def _option(field: dataclasses.Field[Any], help: str) -> click.Option:  # noqa: A002
    """Make the option of a setting, of the type of its default."""
    flag = field.name.replace("_", "-")
    if isinstance(field.default, bool):
        flags = f"--{flag}/--no-{flag}" if field.default else f"--{flag}"
        return click.Option([field.name, flags], is_flag=True, default=field.default, help=help)
    is_map = field.default_factory is dict
    has_default = not is_map and field.default is not dataclasses.MISSING
    default: dict[str, Any] = {"default": field.default} if has_default else {}
    return click.Option(
        [field.name, f"--{flag}"],
        type=type(field.default) if isinstance(field.default, int) else str,
        required=not is_map and not has_default,
        multiple=is_map,
        metavar="NAME=VALUE" if is_map else None,
        show_default=True,
        help=help,
        **default,
    )


def named(args: list[str], option: str) -> str | None:
    """Find what an option says, before the options that depend on it are known."""
    for word, following in pairwise([*args, ""]):
        if word == option:
            return following or None
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None
