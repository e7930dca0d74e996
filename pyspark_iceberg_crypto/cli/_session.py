"""Commands that open a Spark session: their options, and the session, whose own output stays in a file."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.cli._options import KmsCommand, made_kms
from pyspark_iceberg_crypto.errors import ConfigurationError, IcebergCryptoError, first_line
from pyspark_iceberg_crypto.kms import Kms

if TYPE_CHECKING:  # commands that manage keys run without Spark
    from pyspark.sql import SparkSession

    from pyspark_iceberg_crypto.cli._profile import Catalog, Profile

_STARTING = "starting Spark; the first start downloads Iceberg's jar, which may take minutes"
_LONG_SECONDS = 10
_CATALOG = "spark.sql.catalog."
# What may be set once the JVM runs: spark-submit reads others before, such as spark.jars.repositories.
_AFTER_START = ("spark.sql.", "spark.hadoop.")

CATALOG_CONF: dict[str, Any] = {
    "metavar": "KEY=VALUE",
    "multiple": True,
    "help": "A property of the catalog, such as type=rest or uri=... It overrides the profile. Can be repeated.",
}
CONFIG: dict[str, Any] = {
    "type": click.Path(path_type=Path, dir_okay=False),
    "help": "The profile, a YAML file with catalogs. Default: ICEBERG_CRYPTO_CONFIG's, or "
    "~/.config/iceberg-crypto.yaml, if there is one.",
}
OPTIONS = (
    click.Option(
        ["--catalog-conf"],
        metavar="KEY=VALUE",
        multiple=True,
        help="A property of the catalog, such as type=rest or uri=... It overrides the profile. If neither "
        "configures the catalog, spark-defaults.conf does. Can be repeated.",
    ),
    click.Option(
        ["--conf"], metavar="KEY=VALUE", multiple=True, help="A Spark setting. Can be repeated."
    ),
    click.Option(["--config"], **CONFIG),
    click.Option(["--verbose"], is_flag=True, help="Show Spark's log on standard error."),
    click.Option(["--output"], **_shared.OUTPUT),
)


@dataclass(frozen=True)
class Given:
    """What the command line says about the session.

    Attributes:
        conf: Spark's settings.
        catalog_conf: properties of the catalogs that are named.
        config: the profile.
        verbose: whether to show Spark's log.
        kms: makes their KMS; None: it is not named.
    """

    conf: tuple[str, ...] = ()
    catalog_conf: tuple[str, ...] = ()
    config: Path | None = None
    verbose: bool = False
    kms: Callable[[], Kms] | None = field(default=None, compare=False)


class SessionCommand(KmsCommand):
    """A command that opens a session; what the session needs is not among the arguments of its function."""

    def sections(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options of sessions below the command's own."""
        return {"Spark and catalog options": list(OPTIONS[:-1]), **super().sections(ctx)}

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options, those of sessions, and those of the KMS."""
        *own, helps = click.Command.get_params(self, ctx)
        return [*own, *OPTIONS, self.kms_option, *self.kms_options(ctx), helps]

    def invoke(self, ctx: click.Context) -> Any:
        """Keep what the session needs for `session`."""
        taken = {
            name: ctx.params.pop(name) for name in ("conf", "catalog_conf", "config", "verbose")
        }
        settings = {
            str(one.name): ctx.params.pop(str(one.name))
            for one in (self.kms_option, *self.kms_options(ctx))
        }
        make = (lambda: made_kms(settings)) if settings["kms"] else None
        ctx.obj = Given(**taken, kms=make)
        return super().invoke(ctx)


def command() -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command that opens a session, like ``click.command``."""
    return click.command(cls=SessionCommand)


class FailedInSparkError(IcebergCryptoError):
    """Spark failed in a way that has no type of its own here."""


@contextmanager
def session(
    catalogs: str | Sequence[str] = (),
    also: Sequence[str] = (),
    needed: Sequence[str] | None = None,
) -> Iterator[SparkSession]:
    """Run a Spark session as the command line asks for it.

    Args:
        catalogs: the catalog to set up, or several: by the profile, and by the options of the command line.
        also: more of them, by the profile alone.
        needed: those without which nothing can be done; None: all of them. Others are set up if there are any.

    Raises:
        SparkNotStartedError: Spark did not start.
        IcebergCryptoError: a setting is wrong; or what failed in the session, as long as Java can say why.
    """
    from pyspark_iceberg_crypto.jvm import _jvm
    from pyspark_iceberg_crypto.jvm._typed import typed_errors

    context = click.get_current_context()
    given = context.find_object(Given) or Given()
    names = [catalogs] if isinstance(catalogs, str) else catalogs
    builder = builder_of(given, names, also, [*names, *also] if needed is None else needed)
    secrets = taken_secrets(builder._options)
    number, log = tempfile.mkstemp(prefix="iceberg-crypto-", suffix=".log")
    os.close(number)
    context.meta[_shared.LOG] = Path(log)
    with _copied(Path(log)) if given.verbose else nullcontext():
        spark = _start(builder, Path(log), _of_spark(secrets))
        try:
            for key, value in secrets.items():
                if key.startswith(_CATALOG):
                    spark.conf.set(key, value)
            with typed_errors():
                yield spark
        except (IcebergCryptoError, click.ClickException):
            raise
        except Exception as error:
            raise FailedInSparkError(*_shared.told(error)) from error
        finally:
            _jvm.shut_down(spark)


def builder_of(
    given: Given, catalogs: Sequence[str], also: Sequence[str] = (), needed: Sequence[str] = ()
) -> Any:
    """Begin a session with catalogs of the profile, as the command line changes them.

    Raises:
        ConfigurationError: there is no catalog of a needed name, or a setting is wrong.
    """
    from pyspark_iceberg_crypto.cli import _profile
    from pyspark_iceberg_crypto.jvm import _quiet
    from pyspark_iceberg_crypto.session import prepare
    from pyspark_iceberg_crypto.settings import packages_of, session_kms

    profile = _profile.load(given.config)
    builder = _quiet.builder("iceberg-crypto", "info" if given.verbose else "warn")
    for key, value in {**profile.spark, **_shared.pairs(given.conf)}.items():
        builder.config(key, value)
    wanted = _shared.pairs(given.catalog_conf)
    _refuse_unknown(
        [name for name in needed if name in also or not wanted], profile, builder._options
    )
    kms = given.kms() if given.kms is not None else None
    # A name such as db.t may be of two catalogs; the one of the profile is meant, unless another is set up here.
    known = [name for name in catalogs if name in profile.texts]
    named = known if known and not {"type", "catalog-impl"} & wanted.keys() else catalogs
    found = {name: profile.catalog(name) for name in [*named, *also]}
    if kms is not None:  # for files without a catalog
        for key, value in session_kms(kms.properties()).items():
            builder.config(key, value)
    packages = [
        *profile.packages,
        *packages_of(kms, {}),
        *(one for each in found.values() for one in each.packages),
    ]
    prepare(builder, packages)
    for name, own in found.items():
        if name in also:
            _set_up(builder, name, own.properties, own.kms)
        else:
            _set_up(builder, name, *changed(own, wanted, kms))
    return builder


def _refuse_unknown(names: Sequence[str], profile: Profile, options: dict[str, Any]) -> None:
    from pyspark_iceberg_crypto._names import SESSION_CATALOG
    from pyspark_iceberg_crypto.jvm import _launch

    for name in names:
        is_set = _launch.session_setting(options, f"spark.sql.catalog.{name}") is not None
        if name == SESSION_CATALOG or name in profile.texts or is_set:
            continue
        has = ", ".join(profile.texts)
        raise ConfigurationError(
            f"There is no catalog {name!r}; "
            + (f"the profile has: {has}." if has else "there is no profile with catalogs."),
            "check its name, or set it up: in the profile (docs/cli.md), by --catalog-conf type=... or in "
            "spark-defaults.conf",
        )


def changed(
    own: Catalog, wanted: dict[str, str], kms: Kms | None
) -> tuple[dict[str, str], Kms | None]:
    """Return the profile's properties and KMS of a catalog as the command line changes them.

    Another kind of catalog, or another KMS, takes the place of the profile's as a whole.

    Args:
        own: what the profile has.
        wanted: the properties of the command line.
        kms: the KMS of the command line.
    """
    kept = dict(own.properties)
    names_kms = bool({"encryption.kms-type", "encryption.kms-impl"} & wanted.keys())
    if {"type", "catalog-impl"} & wanted.keys():
        kept = {k: v for k, v in kept.items() if k not in ("type", "catalog-impl")}
    if kms is not None or names_kms:
        kept = {k: v for k, v in kept.items() if not _is_of_kms(k)}
    return {**kept, **wanted}, kms or (None if names_kms else own.kms)


def _is_of_kms(key: str) -> bool:
    shared = ("encryption.kms.cache.", "encryption.kms.retry.")
    return key.startswith(("encryption.kms-", "encryption.kms.")) and not key.startswith(shared)


def _set_up(builder: Any, name: str, properties: dict[str, str], kms: Kms | None) -> None:
    from pyspark_iceberg_crypto.jvm import _launch
    from pyspark_iceberg_crypto.session import configure_spark, prepare
    from pyspark_iceberg_crypto.settings import packages_of

    if not properties and kms is None:
        return  # spark-defaults.conf sets it up
    prefix = f"spark.sql.catalog.{name}"
    is_new = bool({"type", "catalog-impl"} & properties.keys())
    if is_new or _launch.session_setting(builder._options, prefix) is None:
        configure_spark(builder, name, kms=kms, options=properties)
        return
    prepare(builder, packages_of(kms, properties))
    for key, value in {**(kms.properties() if kms is not None else {}), **properties}.items():
        builder.config(f"{prefix}.{key}", value)


def taken_secrets(options: dict[str, Any]) -> dict[str, str]:
    """Take secrets out of a builder, which would put them on the JVM's command line; Spark will show none."""
    from pyspark_iceberg_crypto import settings
    from pyspark_iceberg_crypto.jvm import _launch

    secrets = {
        key: str(options.pop(key))
        for key, value in list(options.items())
        if settings.is_secret(key)
        or (key.startswith(_AFTER_START) and settings.holds_secret(key, str(value)))
    }
    has = _launch.session_setting(options, settings.REDACTION)
    options |= settings.redaction({**options, **secrets}, has)
    return secrets


def _of_spark(secrets: dict[str, str]) -> dict[str, str]:
    """Return those that Spark needs from its start, such as of Hadoop's file systems."""
    return {key: value for key, value in secrets.items() if not key.startswith(_CATALOG)}


def _start_java(builder: SparkSession.Builder, secrets: dict[str, str]) -> None:
    """Start the JVM without secrets, and give them to the builder, which then sets them in the JVM."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized(conf=SparkConf().setAll([*builder._options.items()]))
    for key, value in secrets.items():
        builder.config(key, value)


class SparkNotStartedError(IcebergCryptoError):
    """Spark did not start; what it said last is on standard error."""


def _start(builder: SparkSession.Builder, log: Path, secrets: dict[str, str]) -> SparkSession:
    from pyspark_iceberg_crypto.jvm import _quiet

    try:
        with _told_that_it_starts(), _quiet.output_to(log):
            if secrets:
                _start_java(builder, secrets)
            return builder.getOrCreate()
    except Exception as error:
        said: list[Any] = log.read_text(errors="replace").splitlines()[-30:]
        click.echo("\n".join(said), err=True)
        raise SparkNotStartedError(
            f"Spark did not start: {first_line(error)}", "see its output above"
        ) from error


@contextmanager
def _told_that_it_starts() -> Iterator[None]:
    """Say on stderr what one waits for: in a terminal at once, elsewhere when it takes long."""
    with os.fdopen(
        os.dup(2), "w"
    ) as screen:  # of its own: Spark's start sends the real one to a file
        if screen.isatty():
            with Console(file=screen).status(_STARTING):
                yield
            return
        timer = threading.Timer(_LONG_SECONDS, lambda: print(_STARTING, file=screen, flush=True))
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


@contextmanager
def _copied(log: Path) -> Iterator[None]:
    """Copy a log to stderr while it grows."""
    done = threading.Event()
    number = os.dup(2)  # now: Spark's start sends the real one to the log

    def copy() -> None:
        with log.open(errors="replace") as source, os.fdopen(number, "w") as screen:
            while True:
                is_last = done.wait(0.2)
                with suppress(OSError):
                    shutil.copyfileobj(source, screen)
                    screen.flush()
                if is_last:
                    return

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=5)
        sys.stderr.flush()
