"""``kms``: master keys from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import click
from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.cli import _help, _profile, _shared
from pyspark_iceberg_crypto.cli._options import (
    KmsCommand,
    arguments,
    arguments_of,
    made_kms,
    named,
)
from pyspark_iceberg_crypto.errors import ConfigurationError, IcebergCryptoError
from pyspark_iceberg_crypto.kms import BY_TYPE, KeyInfo, Kms
from pyspark_iceberg_crypto.reports import _terminal

_CATALOG = "lake"
_OF_PROFILE = f"{__name__}.of_profile"  # a KMS, or why it has none, in click's meta


class _KeyCommand(KmsCommand):
    """A command on the KMS that ``--kms`` names, or else on the one of a catalog of the profile.

    The profile's is as the profile says: its settings are no options then.
    """

    kms_help = (
        "The kind of KMS. With it, --help shows its own options. Default: the KMS of --catalog."
    )
    place = (
        click.Option(
            ["--catalog"],
            default=_CATALOG,
            show_default=True,
            help="Without --kms: the catalog of the profile whose KMS it is.",
        ),
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path, dir_okay=False),
            help="The profile. Default: ICEBERG_CRYPTO_CONFIG's, or ~/.config/iceberg-crypto.yaml.",
        ),
    )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; where no KMS is named, the profile's says which there are."""
        asks = not {"-h", "--help"} & set(args) and named(args, "--kms") is None
        if asks and not ctx.resilient_parsing:
            catalog, config = named(args, "--catalog") or _CATALOG, named(args, "--config")
            try:
                profile = _profile.load(Path(config) if config else None)
                ctx.meta[_OF_PROFILE] = profile.catalog(catalog).kms
            except ConfigurationError as error:
                ctx.meta[_OF_PROFILE] = error  # shown when it is known whether as JSON
            if ctx.meta[_OF_PROFILE] is None:
                said = f"Or name it in the profile, under kms of the catalog {catalog}."
                raise click.MissingParameter(said, ctx=ctx, param=self.kms_option)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options that name the profile's KMS, too."""
        *own, helps = super().get_params(ctx)
        return [*own, *self.place, helps]

    def kms_options(self, ctx: click.Context) -> list[click.Option]:
        """Return the options of the KMS that is named; of the profile's, those of the method."""
        found = ctx.meta.get(_OF_PROFILE)
        if isinstance(found, Kms):
            return arguments(found.kms_type, self.method)
        return super().kms_options(ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Leave to the command what it was asked for alone."""
        for option in self.place:
            ctx.params.pop(str(option.name))
        return super().invoke(ctx)


def _store(options: dict[str, Any]) -> Kms:
    """Return the KMS that a command is for.

    Raises:
        ConfigurationError: it refuses a setting, or the profile is wrong.
    """
    found = click.get_current_context().meta.get(_OF_PROFILE)
    if isinstance(found, ConfigurationError):
        raise found
    return found if isinstance(found, Kms) else made_kms(options)


_JOBS = {
    "Commands": ("create-key", "list-keys", "describe-key", "rotate-key", "policy"),
    "The same commands for one KMS": BY_TYPE,
}


@click.group(cls=_help.Group, jobs=_JOBS)
def kms() -> None:
    """Create, list, describe and rotate master keys, in any KMS.

    These call the KMS directly, with your own login. Spark needs fewer rights: see `iceberg-crypto kms policy`.

    The KMS is that of the catalog lake of the profile. --catalog names another catalog, --kms another KMS. The commands
    under a KMS's name are the same as those with --kms NAME.

    \b
    Examples:
      iceberg-crypto kms create-key sales
      iceberg-crypto kms list-keys --catalog archive
      iceberg-crypto kms keystore create-key --help
    """  # noqa: D301 (click's mark for lines to leave as they are)


@kms.command("create-key", cls=_KeyCommand, method="create_key")
@click.argument("name")
@_shared.output_option
def create_key(name: str, output: str, **options: Any) -> None:
    """Create a master key called NAME.

    The command prints Spark's settings for it, and the least-privilege policy that Spark's login needs. A key that
    exists is never overwritten.

    \b
    Examples:
      iceberg-crypto kms create-key sales
      iceberg-crypto kms keystore create-key sales \\
          --path keys.p12 --password-env KEYSTORE_PASSWORD

    Exit codes: 0 it is done, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        store = _store(options)
        made = store.create_key(name, **arguments_of(store, options, "create_key"))
        policy = _policy_or_why_not(store, made)
        if output == "json":
            told = {"properties": store.properties(), "policy": policy}
            _shared.show_json({"key": made.to_dict(), **told})
        else:
            _shared.show(_created(store, made, policy), wrap=False)


@kms.command("list-keys", cls=_KeyCommand)
@_shared.output_option
def list_keys(output: str, **options: Any) -> None:
    """List the keys that can be a table's master key.

    \b
    Example:
      iceberg-crypto kms aws list-keys --region eu-central-1

    Exit codes: 0 it is done, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        store = _store(options)
        found = sorted(store.list_keys(), key=lambda key: key.key_id)
        if output == "json":
            _shared.show_json([key.to_dict() for key in found])
        else:
            _shared.show(_terminal.keys(found))


@kms.command("describe-key", cls=_KeyCommand)
@click.argument("key_id")
@_shared.output_option
def describe_key(key_id: str, output: str, **options: Any) -> None:
    """Describe the key KEY_ID, and say whether it can be used.

    \b
    Example:
      iceberg-crypto kms azure describe-key sales \\
          --vault-url https://acme-lake.vault.azure.net

    Exit codes: 0 it is done, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        store = _store(options)
        _show_key(store.describe_key(key_id), output)


@kms.command("rotate-key", cls=_KeyCommand, method="rotate_key")
@click.argument("key_id")
@_shared.output_option
def rotate_key(key_id: str, output: str, **options: Any) -> None:
    """Give the key KEY_ID a new version.

    New tables and new keys of existing tables use it; keys that older versions wrapped can still be read.

    \b
    Example:
      iceberg-crypto kms keystore rotate-key sales \\
          --path keys.p12 --password-env KEYSTORE_PASSWORD

    Exit codes: 0 it is done, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        store = _store(options)
        _show_key(store.rotate_key(key_id, **arguments_of(store, options, "rotate_key")), output)


@kms.command("policy", cls=_KeyCommand)
@click.argument("key_ids", nargs=-1, required=True)
@_shared.output_option
def policy(key_ids: tuple[str, ...], output: str, **options: Any) -> None:
    """Print the policy that Spark needs for KEY_IDS.

    This is the minimum that Spark's login needs to use these keys, as text to paste.

    \b
    Example:
      iceberg-crypto kms vault policy sales \\
          --address https://vault:8200 --token-env VAULT_TOKEN

    Exit codes: 0 it is done, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        store = _store(options)
        text = store.driver_policy(key_ids)
        if output == "json":
            _shared.show_json({"policy": text, "key_ids": list(key_ids)})
        else:
            _shared.print_whole(text)


def _show_key(found: KeyInfo, output: str) -> None:
    if output == "json":
        _shared.show_json(found.to_dict())
    else:
        _shared.show(_terminal.key(found))


def _policy_or_why_not(store: Kms, made: KeyInfo) -> str:
    """Return the policy for a new key. The key exists, so an error here must not hide it."""
    try:
        return store.driver_policy([made.key_id])
    except IcebergCryptoError as error:
        return f"# not known: {error.message}\n# hint: {error.hint}"


def _created(store: Kms, made: KeyInfo, policy: str) -> RenderableType:
    """Lay out a new key: what it is, and what Spark needs for it."""
    settings = [
        f"spark.sql.catalog.lake.{name}={value}" for name, value in store.properties().items()
    ]
    settings += [f"spark.jars.packages={package}" for package in store.packages]
    return Group(
        Text(f"✓ created {made.key_id}\n", "bold green"),
        _terminal.key(made),
        Text("\nSpark's settings, for a catalog called lake:", "bold"),
        Text("\n".join(settings)),
        Text("\nA table with it:", "bold"),
        Text(f"CREATE TABLE lake.db.t (...) TBLPROPERTIES ('encryption.key-id'='{made.key_id}')"),
        Text("\nWhat Spark's login needs, and no more:", "bold"),
        Text(policy.rstrip()),
    )


_COMMANDS = cast(
    "tuple[KmsCommand, ...]", (create_key, list_keys, describe_key, rotate_key, policy)
)


def _commands_of(kind: str) -> _help.Group:
    """Make the same commands for one KMS, which then need no --kms."""
    of_one = _help.Group(kind, help=(BY_TYPE[kind].__doc__ or kind).splitlines()[0])
    for command in _COMMANDS:
        of_one.add_command(
            KmsCommand(
                command.name,
                callback=command.callback,
                params=command.params,
                help=command.help,
                method=command.method,
                kms=kind,
            )
        )
    return of_one


for one in BY_TYPE:
    kms.add_command(_commands_of(one))
