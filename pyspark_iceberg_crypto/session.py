"""Setting up Spark: jars, extension, and a catalog that encrypts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from inspect import isclass
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import _jvm, _launch
from pyspark_iceberg_crypto.errors import ConfigurationError, JarMissingError, SparkConnectError
from pyspark_iceberg_crypto.kms import BY_TYPE, KmsSettings

CATALOG_CLASS = "io.icebergcrypto.spark.EncryptedSparkCatalog"
SESSION_CATALOG_CLASS = "io.icebergcrypto.spark.EncryptedSessionCatalog"
SESSION_CATALOG = "spark_catalog"
PATH_CATALOG = "default_iceberg"  # Iceberg's name for the catalog of paths
# What Iceberg itself gives to that catalog.
PATH_CATALOG_OPTIONS = {"type": "hive", "default-namespace": "default", "cache-enabled": "false"}
CATALOG_TYPES = ("hive", "rest", "jdbc", "hadoop", "glue", "nessie")

EXTENSIONS = "spark.sql.extensions"
ICEBERG_EXTENSION = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
ICEBERG_ARTIFACT = "iceberg-spark-runtime-4.1_2.13"
ICEBERG_COORDINATE = f"org.apache.iceberg:{ICEBERG_ARTIFACT}:1.12.0"
# Iceberg's jars that hold these groups of packages, too.
BUNDLES = {"com.azure": "iceberg-azure-bundle", "com.google.auth": "iceberg-gcp-bundle"}
OUR_ARTIFACT = "iceberg-crypto-spark-4.1_2.13"

BuilderOrSession = TypeVar("BuilderOrSession", SparkSession.Builder, SparkSession)


def configure_spark(
    builder_or_session: BuilderOrSession,
    catalog: str = "lake",
    type: str | None = None,  # noqa: A002 (Iceberg's own name for it)
    *,
    catalog_impl: str | None = None,
    uri: str | None = None,
    warehouse: str | None = None,
    kms: KmsSettings | None = None,
    session_catalog: bool = False,
    path_access: bool = True,
    required: bool = False,
    allowed_key_ids: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> BuilderOrSession:
    """Set up a catalog whose tables can be encrypted.

    On a builder this also adds this package's jar, Iceberg's Spark runtime, the jars that the KMS needs and
    Iceberg's SQL extension to what is already set in the builder, in PYSPARK_SUBMIT_ARGS or in
    spark-defaults.conf; nothing set there is lost, and jars named there are used as they are. When the process
    already has a JVM (under spark-submit, in a notebook's second cell) jars cannot be added any more: they
    must be there.

    Args:
        builder_or_session: ``SparkSession.builder``, or a running session, where only the catalog is set.
        catalog: the catalog's name in SQL. ``spark_catalog`` is Spark's own.
        type: the kind of catalog: hive (the default), rest, jdbc, hadoop, glue or nessie.
        catalog_impl: instead of a type, the name of a Catalog class.
        uri: the catalog's address (Iceberg's ``uri``).
        warehouse: where its tables are stored (Iceberg's ``warehouse``).
        kms: where the master keys are: a ``Keystore``, ``Vault``, ``AwsKms``, ``GcpKms``, ``AzureKeyVault`` or
            ``Pkcs11``, or any object with a ``properties`` method that returns catalog properties.
        session_catalog: set up ``spark_catalog`` the same way too, so that names without a catalog work.
        path_access: use the same KMS for tables that are read and written by their paths, as in
            ``spark.read.format("iceberg").load("/path")``. Iceberg takes paths to a catalog called
            default_iceberg, which is set up for this unless the session or builder has one; the first catalog
            with a KMS counts. Without it, Iceberg's own catalog reads no encrypted table there, and leaves
            plaintext files behind when it fails to commit a write.
        required: refuse to create a table without ``encryption.key-id``.
        allowed_key_ids: the only master keys that tables may name: key ids, in which ``*`` stands for any
            characters and ``?`` for one (a backslash before either takes its meaning away). None: any key.
        options: further catalog properties by their own names, such as ``{"io-impl": "..."}``.

    Returns:
        What was passed in, so that ``.getOrCreate()`` can follow.

    Raises:
        ConfigurationError: an argument is wrong, contradicts another, or contradicts the running session.
        JarMissingError: a JVM is running, and runs without the jars.
        NoSessionError: the session was stopped.
        SparkConnectError: it is a Spark Connect session or builder; its server needs the settings.
    """
    properties = _catalog_properties(
        type, catalog_impl, uri, warehouse, kms, required, allowed_key_ids, dict(options or {})
    )
    conf = _catalog_conf(_check_name(catalog), properties)
    if session_catalog:
        conf.update(_catalog_conf(SESSION_CATALOG, properties))
    if path_access and not _is_set(builder_or_session, f"spark.sql.catalog.{PATH_CATALOG}"):
        conf.update(_catalog_conf(PATH_CATALOG, _path_properties(properties)))
    if isinstance(builder_or_session, SparkSession.Builder):
        prepare(builder_or_session, _packages(kms, properties))
        active = SparkSession._instantiatedSession
        if active is not None and active.sparkContext._jsc is not None:
            _check_running(active, conf)
        for key, value in conf.items():
            builder_or_session.config(key, value)
    else:
        _jvm.require_session(builder_or_session)
        _check_running(builder_or_session, conf)
        for key, value in conf.items():
            builder_or_session.conf.set(key, value)
    return builder_or_session


def prepare(builder: SparkSession.Builder, packages: Sequence[str] = ()) -> None:
    """Add the jars and Iceberg's extension to a builder, without a catalog.

    Args:
        builder: the builder.
        packages: Maven coordinates that the KMS needs beside our jar and Iceberg's.

    Raises:
        ConfigurationError: an Iceberg runtime for another Spark is set.
        JarMissingError: a JVM is running without the jars, or this installation has no jar.
        SparkConnectError: the builder makes a Spark Connect session.
    """
    options = builder._options
    if "spark.remote" in options or "SPARK_REMOTE" in os.environ:
        raise SparkConnectError(
            "a Spark Connect client cannot set up the server's jars and catalogs",
            f"start the server with --packages {_jvm.COORDINATE} and set spark.sql.catalog.* there",
        )
    active = SparkSession._instantiatedSession
    if active is not None and active.sparkContext._jsc is not None:
        return  # getOrCreate returns that session, and static settings are past changing
    if _jvm.is_up() or "PYSPARK_GATEWAY_PORT" in os.environ:
        _jvm.require_jars()
        extensions = options.get(EXTENSIONS) or _jvm.launched_conf(EXTENSIONS)
    else:
        _add_jars(builder, packages)
        extensions = _launch.session_setting(options, EXTENSIONS)
    builder.config(EXTENSIONS, _launch.join(_launch.split(extensions), [ICEBERG_EXTENSION]))


def wheel_jar() -> Path:
    """Return the path of the jar that this package carries.

    Raises:
        JarMissingError: it carries none, like a source tree that was never built.
    """
    jars = sorted((Path(__file__).parent / "jars").glob(f"{OUR_ARTIFACT}-*.jar"))
    if not jars:
        raise JarMissingError(
            "this installation of pyspark-iceberg-crypto has no jar",
            "in a source tree run `make jar`; otherwise pip install --force-reinstall "
            "pyspark-iceberg-crypto",
        )
    return jars[-1]


def _add_jars(builder: SparkSession.Builder, wanted: Sequence[str]) -> None:
    """Add our jar, Iceberg's coordinate and what the KMS needs, unless something set already brings them."""
    options = builder._options
    jars = _launch.jar_setting(options, "spark.jars")
    packages = _launch.jar_setting(options, "spark.jars.packages")
    named = [jar.rpartition("/")[2] for jar in jars] + _launch.spark_home_jars()
    named += [coordinate.split(":")[1] for coordinate in packages if coordinate.count(":") >= 2]

    iceberg = [name for name in named if name.startswith("iceberg-spark-runtime-")]
    wrong = [name for name in iceberg if not name.startswith(ICEBERG_ARTIFACT)]
    if wrong:
        raise ConfigurationError(
            f"Spark is set up with {wrong[0]}, which is not for Spark 4.1 with Scala 2.13",
            f"use {ICEBERG_COORDINATE}, or leave it out: configure_spark adds it",
        )
    by_coordinate = any(_is_ours(coordinate) for coordinate in packages)
    if not any(name.startswith(OUR_ARTIFACT) for name in named):
        _launch.set_jars(options, "spark.jars", [*jars, str(wheel_jar())])
    missing = [package for package in wanted if not _is_among(package, named)]
    if not iceberg and not by_coordinate:  # our coordinate brings Iceberg along
        missing.insert(0, ICEBERG_COORDINATE)
    if missing:
        _launch.set_jars(options, "spark.jars.packages", [*packages, *missing])


def _is_ours(coordinate: str) -> bool:
    return coordinate.startswith(f"io.icebergcrypto:{OUR_ARTIFACT}:")


def _is_among(coordinate: str, named: list[str]) -> bool:
    """Tell whether a package is among the names of jars and artifacts, in whatever version."""
    group, artifact = coordinate.split(":")[:2]
    holders = [artifact, BUNDLES[group]] if group in BUNDLES else [artifact]
    names = "|".join(map(re.escape, holders))
    return any(re.fullmatch(rf"({names})(-\d.*)?", name) for name in named)


def _packages(kms: KmsSettings | None, properties: dict[str, str]) -> Sequence[str]:
    """Return the packages that a KMS needs: given as an object, or as properties."""
    known = BY_TYPE.get(properties.get("encryption.kms-type", "").lower())
    found: Sequence[str] = getattr(known if kms is None else kms, "packages", ())
    return found


def _check_name(catalog: str) -> str:
    if not isinstance(catalog, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", catalog):
        raise ConfigurationError(
            f"{catalog!r} cannot be a catalog's name",
            "use letters, digits and underscores, as in catalog='lake'",
        )
    return catalog


def _catalog_properties(
    type: str | None,  # noqa: A002
    catalog_impl: str | None,
    uri: str | None,
    warehouse: str | None,
    kms: KmsSettings | None,
    required: bool,
    allowed_key_ids: Sequence[str] | None,
    options: dict[str, str],
) -> dict[str, str]:
    """Check the arguments and make Iceberg's catalog properties of them."""
    _check_type(type or options.get("type"), catalog_impl or options.get("catalog-impl"))
    if catalog_impl is None and not {"type", "catalog-impl"} & options.keys():
        type = type or "hive"  # noqa: A001
    named = {"type": type, "catalog-impl": catalog_impl, "uri": uri, "warehouse": warehouse}
    if kms is not None:
        if isclass(kms) or not isinstance(kms, KmsSettings):
            raise ConfigurationError(
                f"kms must be a KMS such as Keystore(...), not {kms!r}",
                "for example kms=Keystore('keys.p12', password_env='KEYSTORE_PASSWORD')",
            )
        named.update(kms.properties())
    if required:
        named["encryption.required"] = "true"
    if allowed_key_ids is not None:
        named["encryption.allowed-key-ids"] = _key_id_list(allowed_key_ids)
    given = {key: value for key, value in named.items() if value is not None}
    for key, value in options.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ConfigurationError(
                f"options must be text to text, and {key!r} is {value!r}",
                f"options={{{str(key)!r}: {str(value)!r}}}",
            )
        if given.get(key, value) != value:
            raise ConfigurationError(
                f"options sets {key} to {value!r}, and an argument sets it to {given[key]!r}",
                "set it in one place",
            )
    return {**given, **options}


def _key_id_list(key_ids: Sequence[str]) -> str:
    """Join key ids; a comma within one is escaped."""
    is_list = isinstance(key_ids, Sequence) and not isinstance(key_ids, (str, bytes))
    if not is_list or not key_ids or not all(isinstance(k, str) and k.strip() for k in key_ids):
        raise ConfigurationError(
            f"allowed_key_ids must be a list of key ids, not {key_ids!r}",
            "for example allowed_key_ids=['sales', 'hr-*']; None allows every key",
        )
    return ", ".join(re.sub(r"(\\.)|,", lambda m: m[1] or r"\,", key_id) for key_id in key_ids)


def _check_type(type: str | None, catalog_impl: str | None) -> None:  # noqa: A002
    if type is not None and catalog_impl is not None:
        raise ConfigurationError(
            f"both type={type!r} and catalog_impl={catalog_impl!r} are given", "give one of them"
        )
    if type is not None and type not in CATALOG_TYPES:
        raise ConfigurationError(
            f"unknown catalog type {type!r}",
            f"one of {', '.join(CATALOG_TYPES)}, or catalog_impl='<class name>'",
        )


def _catalog_conf(catalog: str, properties: dict[str, str]) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{catalog}"
    implementation = SESSION_CATALOG_CLASS if catalog == SESSION_CATALOG else CATALOG_CLASS
    return {prefix: implementation, **{f"{prefix}.{key}": v for key, v in properties.items()}}


def _path_properties(properties: dict[str, str]) -> dict[str, str]:
    """Return a catalog's properties without its own location: a path needs the KMS and the rules for new tables."""
    place = {"type", "catalog-impl", "uri", "warehouse", "io-impl", "rest-catalog-purge"}
    return {**{k: v for k, v in properties.items() if k not in place}, **PATH_CATALOG_OPTIONS}


def _is_set(builder_or_session: SparkSession.Builder | SparkSession, key: str) -> bool:
    if not isinstance(builder_or_session, SparkSession.Builder):
        _jvm.require_session(builder_or_session)
        return builder_or_session.conf.get(key, None) is not None
    active = SparkSession._instantiatedSession
    if active is not None and active.sparkContext._jsc is not None:
        return active.conf.get(key, None) is not None
    return _launch.session_setting(builder_or_session._options, key) is not None


def _check_running(session: SparkSession, conf: dict[str, str]) -> None:
    """Check that a running session has what the catalog needs, and that the settings can take effect.

    Spark loads a catalog once: settings that come later would be ignored, in silence.
    """
    _jvm.require_jars(session)
    extensions = _launch.split(session.conf.get(EXTENSIONS, None))
    if ICEBERG_EXTENSION not in extensions:
        raise ConfigurationError(
            f"this session was started without Iceberg's SQL extension in {EXTENSIONS}",
            "stop it and make it with configure_spark(SparkSession.builder, ...), or start Spark with "
            f"--conf {EXTENSIONS}={ICEBERG_EXTENSION}",
        )
    for key, value in conf.items():
        current = session.conf.get(key, None)
        is_late = current is None and key.startswith(f"spark.sql.catalog.{SESSION_CATALOG}")
        if (current is not None and current != value) or is_late:
            now = f"has {key}={current}" if current else f"runs without {key}"
            raise ConfigurationError(
                f"this session {now}, which cannot change while it runs",
                "choose another catalog name, or stop the session and start with these settings",
            )
