"""``kms``: master keys from the command line."""

from __future__ import annotations

from typing import Any, cast

import click
from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.cli._options import KmsCommand, make
from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.kms import BY_TYPE, KeyInfo, Kms
from pyspark_iceberg_crypto.reports import _terminal


@click.group()
def kms() -> None:
    """Create, list, describe and rotate master keys, in any KMS.

    These call the KMS directly, with your own login; Spark needs fewer rights, see `policy`.

    \b
    Examples:
      iceberg-crypto kms vault create-key --address https://vault:8200 --token-env VAULT_TOKEN sales
      iceberg-crypto kms aws list-keys --region eu-central-1
      iceberg-crypto kms keystore create-key --help

    The commands without a KMS's name are the same, with --kms NAME.
    """  # noqa: D301 (click's mark for lines to leave as they are)


@kms.command("create-key", cls=KmsCommand, method="create_key")
@click.argument("name")
@_shared.output_option
def create_key(name: str, output: str, **options: Any) -> None:
    """Make a new master key called NAME.

    Prints Spark's settings for it, and the least-privilege policy that Spark's login needs. A key that exists
    is never overwritten.

    \b
    Example:
      iceberg-crypto kms keystore create-key --path keys.p12 --password-env KEYSTORE_PASSWORD sales

    Exit code: 0 it is done, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        store, settings = make(options, "create_key")
        made = store.create_key(name, **settings)
        policy = _policy_or_why_not(store, made)
        if output == "json":
            told = {"properties": store.properties(), "policy": policy}
            _shared.show_json({"key": made.to_dict(), **told})
        else:
            _shared.show(_created(store, made, policy), wrap=False)


@kms.command("list-keys", cls=KmsCommand)
@_shared.output_option
def list_keys(output: str, **options: Any) -> None:
    """List the keys that can be a table's master key.

    \b
    Example:
      iceberg-crypto kms aws list-keys --region eu-central-1

    Exit code: 0 it is done, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        store, _ = make(options)
        found = sorted(store.list_keys(), key=lambda key: key.key_id)
        if output == "json":
            _shared.show_json([key.to_dict() for key in found])
        else:
            _shared.show(_terminal.keys(found))


@kms.command("describe-key", cls=KmsCommand)
@click.argument("key_id")
@_shared.output_option
def describe_key(key_id: str, output: str, **options: Any) -> None:
    """Tell what the key KEY_ID is, and whether it can be used.

    \b
    Example:
      iceberg-crypto kms azure describe-key --vault-url https://acme-lake.vault.azure.net sales

    Exit code: 0 it is done, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        store, _ = make(options)
        _show_key(store.describe_key(key_id), output)


@kms.command("rotate-key", cls=KmsCommand, method="rotate_key")
@click.argument("key_id")
@_shared.output_option
def rotate_key(key_id: str, output: str, **options: Any) -> None:
    """Give the key KEY_ID a new version.

    New tables and new keys of old tables use it; what older versions wrapped can still be read.

    \b
    Example:
      iceberg-crypto kms keystore rotate-key --path keys.p12 --password-env KEYSTORE_PASSWORD sales

    Exit code: 0 it is done, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        store, settings = make(options, "rotate_key")
        _show_key(store.rotate_key(key_id, **settings), output)


@kms.command("policy", cls=KmsCommand)
@click.argument("key_ids", nargs=-1, required=True)
@_shared.output_option
def policy(key_ids: tuple[str, ...], output: str, **options: Any) -> None:
    """Print the policy that Spark needs for KEY_IDS.

    It is the least that Spark's login needs to use these keys, as text to paste.

    \b
    Example:
      iceberg-crypto kms vault policy --address https://vault:8200 --token-env VAULT_TOKEN sales

    Exit code: 0 it is done, 2 it could not be done, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        store, _ = make(options)
        text = store.driver_policy(key_ids)
        if output == "json":
            _shared.show_json({"policy": text, "key_ids": list(key_ids)})
        else:
            click.echo(text)


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


def _commands_of(kind: str) -> click.Group:
    """Make the same commands for one KMS, which then need no --kms."""
    of_one = click.Group(
        kind, help=f"The same for one KMS: {(BY_TYPE[kind].__doc__ or kind).splitlines()[0]}"
    )
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
