"""Setting up Spark: jars, extension, and a catalog that encrypts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import settings
from pyspark_iceberg_crypto._names import PATH_CATALOG
from pyspark_iceberg_crypto.columns.orc import OrcKeys
from pyspark_iceberg_crypto.columns.parquet import ParquetKeys
from pyspark_iceberg_crypto.errors import ConfigurationError, SparkConnectError
from pyspark_iceberg_crypto.jvm import _connect, _jvm, _launch
from pyspark_iceberg_crypto.jvm.artifacts import build_for
from pyspark_iceberg_crypto.kms import KmsSettings
from pyspark_iceberg_crypto.settings import (
    CATALOG_CLASS,
    COLUMN_KEYS,
    DISK_ENCRYPTION,
    EXTENSIONS,
    HADOOP_PREFIX,
    LOCATIONS,
    METRICS_PLUGIN,
    PATHS_LIKE,
    PLUGINS,
    REDACTION,
    SESSION_CATALOG_CLASS,
    SESSION_PREFIX,
    catalog_properties,
    column_conf,
    column_extensions,
    conf_of,
    packages_of,
    redaction,
)

# Iceberg's jars that hold these groups of packages, too.
BUNDLES = {"com.azure": "iceberg-azure-bundle", "com.google.auth": "iceberg-gcp-bundle"}

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
    require_encryption: bool = False,
    allowed_key_ids: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    metrics: bool = False,
    parquet_columns: ParquetKeys | None = None,
    orc_columns: OrcKeys | None = None,
    local_disk_encryption: bool = False,
) -> BuilderOrSession:
    """Set up a catalog whose tables can be encrypted.

    On a builder this also adds this package's jar, Iceberg's Spark runtime, the jars that the KMS needs and
    Iceberg's SQL extension to what is already set in the builder, in PYSPARK_SUBMIT_ARGS or in
    spark-defaults.conf; nothing set there is lost, and jars named there are used as they are. When the process
    already has a JVM (under spark-submit, in a notebook's second cell) jars can no longer be added: they
    must already be there.

    A second session of a process starts without this project's catalogs, and keys for columns with their KMS, of the
    first one, which was stopped. The JVM stays, and with it all other settings of the first session: jars, extensions,
    plugins, ``spark.redaction.regex``, ``local_disk_encryption``.

    Args:
        builder_or_session: ``SparkSession.builder``, or a running session, where only the catalog is set.
        catalog: the catalog's name in SQL. ``spark_catalog`` is Spark's own.
        type: the kind of catalog: hive (the default), rest, jdbc, hadoop, glue or nessie.
        catalog_impl: instead of a type, the name of a Catalog class.
        uri: the catalog's address (Iceberg's ``uri``).
        warehouse: where its tables are stored (Iceberg's ``warehouse``).
        kms: where the master keys are: a ``Keystore``, ``Vault``, ``AwsKms``, ``GcpKms``, ``AzureKeyVault``,
            ``Pkcs11`` or ``HadoopKms``, or any object with a ``properties`` method that returns catalog properties.
        session_catalog: set up ``spark_catalog`` the same way too, so that names without a catalog work.
        path_access: use the same KMS for tables that are read and written by their paths, as in
            ``spark.read.format("iceberg").load("/path")``. Iceberg takes paths to a catalog called
            default_iceberg, which is set up for this, with the rules for tables too, unless the session or builder has
            one; the first catalog with a KMS counts. Without it, Iceberg's own catalog reads no encrypted table there,
            and leaves plaintext files behind when it fails to commit a write.
        require_encryption: refuse to create a table without ``encryption.key-id``.
        allowed_key_ids: the only master keys that tables may name: key ids, in which ``*`` stands for any
            characters and ``?`` for one (a backslash before either takes its meaning away). None: any key.
        options: further catalog properties by their own names, such as ``{"io-impl": "..."}``. A new session hides
            secrets among them in its event log and UI (``spark.redaction.regex``); they are on the JVM's command line.
        metrics: give the driver's and the executors' counters to Spark's metrics system, and those of tasks to its
            UI: this adds this package's plugin to ``spark.plugins``.
        parquet_columns: keys for the footers and columns of Spark's own Parquet files, those that are not Iceberg's,
            in the same KMS. Every such file that this session writes then needs keys, these or those of
            ``df.write.options(**ParquetKeys(...).options())``; see docs/parquet-columns.md.
        orc_columns: the same for columns of Spark's own ORC files; see docs/orc-columns.md.
        local_disk_encryption: have Spark encrypt what it writes to local disks (``spark.io.encryption.enabled``):
            shuffled, spilled and cached rows, which are otherwise in plaintext there. False does not change it.

    Returns:
        What was passed in, so that ``.getOrCreate()`` can follow.

    Raises:
        ConfigurationError: an argument is wrong, contradicts another, or contradicts the running session.
        JarMissingError: a JVM is running, and runs without the jars.
        NoSessionError: the session was stopped.
        SparkConnectError: it is a Spark Connect session or builder; its server needs the settings.
    """
    _refuse_connect(builder_or_session)
    properties = catalog_properties(
        type,
        catalog_impl,
        uri,
        warehouse,
        kms,
        require_encryption,
        allowed_key_ids,
        dict(options or {}),
    )
    if isinstance(builder_or_session, SparkSession.Builder):
        _forget_first_session()
    get = partial(_setting, builder_or_session)
    _check_location(get, catalog, properties)
    path_access &= get(f"spark.sql.catalog.{PATH_CATALOG}") is None or get(PATHS_LIKE) == catalog
    conf = conf_of(catalog, properties, session_catalog, path_access)
    conf.update(column_conf(parquet_columns, orc_columns, properties))
    checks = column_extensions(parquet_columns, orc_columns)
    if isinstance(builder_or_session, SparkSession.Builder):
        prepare(builder_or_session, packages_of(kms, properties))
        if active := _running():
            _check_running(active, conf, metrics, local_disk_encryption, checks)
            metrics = local_disk_encryption = False  # they are there
            conf = _of_running(conf)
        else:
            conf |= redaction(conf, get(REDACTION))
        if metrics:
            conf[PLUGINS] = _launch.join(_launch.split(get(PLUGINS)), [METRICS_PLUGIN])
        if local_disk_encryption:
            conf[DISK_ENCRYPTION] = "true"
        extensions = _launch.split(builder_or_session._options.get(EXTENSIONS))
        if checks and extensions:  # a session that runs can have no more
            conf[EXTENSIONS] = _launch.join(extensions, checks)
        for key, value in conf.items():
            builder_or_session.config(key, value)
    else:
        _jvm.require_session(builder_or_session)
        _check_running(builder_or_session, conf, metrics, local_disk_encryption, checks)
        for key, value in _of_running(conf).items():
            builder_or_session.conf.set(key, value)
    return builder_or_session


def _of_running(conf: dict[str, str]) -> dict[str, str]:
    """Return settings for a session that runs: Spark reads its prefix for Hadoop's only when it starts."""
    return {key.removeprefix(HADOOP_PREFIX): value for key, value in conf.items()}


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
    _refuse_connect(builder)
    if _running():
        return  # getOrCreate returns that session, and static settings are past changing
    if _jvm.is_up() or "PYSPARK_GATEWAY_PORT" in os.environ:
        _jvm.require_jars()
    else:
        _add_jars(builder, packages)
    extensions = _setting(builder, EXTENSIONS)
    builder.config(EXTENSIONS, _launch.join(_launch.split(extensions), [*build_for().extensions]))


def _refuse_connect(builder_or_session: SparkSession.Builder | SparkSession) -> None:
    """Refuse what makes, or is, a session of Spark Connect.

    Raises:
        SparkConnectError: it says what the server has to be started with.
    """
    if not isinstance(builder_or_session, SparkSession.Builder):
        is_remote = _connect.is_connect(builder_or_session)
    else:
        options = builder_or_session._options
        mode = str(options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", "")))
        remote = options.get("spark.remote", os.environ.get("SPARK_REMOTE"))
        is_remote = remote is not None or mode.lower() == "connect"
    if is_remote:
        raise SparkConnectError(
            "a Spark Connect client cannot set up the server's jars and catalogs",
            _connect.SERVER_SETTINGS,
        )


def _add_jars(builder: SparkSession.Builder, wanted: Sequence[str]) -> None:
    """Add our jar, Iceberg's coordinate and what the KMS needs, unless something set already brings them."""
    options = builder._options
    jars = _launch.jar_setting(options, "spark.jars")
    packages = _launch.jar_setting(options, "spark.jars.packages")
    named = [jar.rpartition("/")[2] for jar in jars] + _launch.spark_home_jars()
    named += [coordinate.split(":")[1] for coordinate in packages if coordinate.count(":") >= 2]

    build = build_for()
    iceberg = [name for name in named if name.startswith("iceberg-spark-runtime-")]
    ours = [name for name in named if name.startswith("iceberg-crypto-spark-")]
    for names, artifact, coordinate in (
        (iceberg, build.iceberg_artifact, build.iceberg_coordinate),
        (ours, build.artifact, build.coordinate),
    ):
        wrong = [name for name in names if not name.startswith(artifact)]
        if wrong:
            raise ConfigurationError(
                f"Spark is set up with {wrong[0]}, which is not for Spark {build.spark} with Scala {build.scala}",
                f"use {coordinate}, or leave it out, and it is added",
            )
    prefix = f"io.icebergcrypto:{build.artifact}:"
    by_coordinate = any(coordinate.startswith(prefix) for coordinate in packages)
    if not ours:
        _launch.set_jars(options, "spark.jars", [*jars, str(settings.jar_path())])
    missing = [package for package in wanted if not _is_among(package, named)]
    if not iceberg and not by_coordinate:  # our coordinate brings Iceberg along
        missing.insert(0, build.iceberg_coordinate)
    if missing:
        _launch.set_jars(options, "spark.jars.packages", [*packages, *missing])


def _is_among(coordinate: str, named: list[str]) -> bool:
    """Return whether a package is among the names of jars and artifacts, in whatever version."""
    group, artifact = coordinate.split(":")[:2]
    holders = [artifact, BUNDLES[group]] if group in BUNDLES else [artifact]
    names = "|".join(map(re.escape, holders))
    return any(re.fullmatch(rf"({names})(-\d.*)?", name) for name in named)


def _check_location(
    get: Callable[[str], str | None], catalog: str, properties: Mapping[str, str]
) -> None:
    """Refuse a catalog that has no address, before Spark starts.

    Raises:
        ConfigurationError: it says what is missing.
    """
    kind = properties.get("type", "")
    for key in LOCATIONS.get(kind, ()):
        if key not in properties and get(f"spark.sql.catalog.{catalog}.{key}") is None:
            raise ConfigurationError(
                f"catalog {catalog} of type {kind} has no {key}",
                f"give {key}=..., the property {key} of the catalog",
            )


def _running() -> SparkSession | None:
    """Return the session of this process that was not stopped, which getOrCreate returns."""
    active = SparkSession._instantiatedSession
    return active if active is not None and active.sparkContext._jsc is not None else None


def _setting(builder_or_session: SparkSession.Builder | SparkSession, key: str) -> str | None:
    """Read a setting of a session: of one that runs, or as it will start."""
    if not isinstance(builder_or_session, SparkSession.Builder):
        _jvm.require_session(builder_or_session)
        return builder_or_session.conf.get(key, None)
    if active := _running():
        return active.conf.get(key, None)
    options = builder_or_session._options
    if _jvm.is_up() or "PYSPARK_GATEWAY_PORT" in os.environ:
        return options.get(key) or _jvm.launched_conf(key)
    return _launch.session_setting(options, key)


def _forget_first_session() -> None:
    """Have the next session start without this project's catalogs and column keys of one that was stopped.

    PySpark starts the JVM with the settings of the first session, and every later session in it gets them, too: a
    catalog would have the KMS of one and the rules of the other, and files would get keys that nobody asked for. What
    stands outside of the program has the value that it has there again. The extensions that check column keys stay,
    which have nothing to check without any, and so do all settings that are not this project's.
    """
    if _running() or not _jvm.is_up() or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    launched = _jvm.all_launched()
    ours = [
        key for key, value in launched.items() if value in (CATALOG_CLASS, SESSION_CATALOG_CLASS)
    ]
    of_columns = {
        HADOOP_PREFIX + key
        for chooser, value, keys in COLUMN_KEYS
        if launched.get(HADOOP_PREFIX + chooser, "").startswith(value)
        for key in (chooser, *keys)
    }
    outside = {
        key: _launch.session_setting({}, key)
        for key in launched
        if any(key == name or key.startswith(f"{name}.") for name in (*ours, PATHS_LIKE))
        or key.startswith(SESSION_PREFIX)
        or key in of_columns
    }
    _jvm.set_launched({key: value for key, value in outside.items() if value != launched[key]})


def _check_running(
    session: SparkSession,
    conf: dict[str, str],
    metrics: bool,
    local_disk_encryption: bool,
    more_extensions: Sequence[str],
) -> None:
    """Check that a running session has what the catalog needs, and that the settings can take effect.

    Spark loads a catalog once: settings that come later would silently be ignored. So would missing keys for ORC
    files, without the extension that checks them; and an overwriting statement that tasks refuse has deleted what was
    there.
    """
    _jvm.require_jars(session)
    extensions = _launch.split(session.conf.get(EXTENSIONS, None))
    needed = [*build_for().extensions, *more_extensions]
    missing = [name for name in needed if name not in extensions]
    if missing:
        raise ConfigurationError(
            f"this session was started without Iceberg's SQL extension in {EXTENSIONS}"
            if missing[0] == needed[0]
            else f"this session was started without {missing[0]} in {EXTENSIONS}",
            "stop it and create it with configure_spark(SparkSession.builder, ...), or start Spark with "
            f"--conf {EXTENSIONS}={','.join(needed)}",
        )
    if metrics and METRICS_PLUGIN not in _launch.split(session.conf.get(PLUGINS, None)):
        raise ConfigurationError(
            f"this session was started without the metrics plugin in {PLUGINS}",
            "stop it and create it with configure_spark(SparkSession.builder, ..., metrics=True), or start Spark with "
            f"--conf {PLUGINS}={METRICS_PLUGIN}",
        )
    if local_disk_encryption and session.conf.get(DISK_ENCRYPTION, "false") != "true":
        raise ConfigurationError(
            f"this session was started without {DISK_ENCRYPTION}=true",
            "stop it and create it with configure_spark(SparkSession.builder, ..., local_disk_encryption=True), or "
            f"start Spark with --conf {DISK_ENCRYPTION}=true",
        )
    loaded = _jvm.loaded_catalogs(session)
    for key, value in conf.items():
        if key.startswith(HADOOP_PREFIX):
            continue
        current = session.conf.get(key, None)
        is_late = current is None and _catalog_of(key) in loaded
        if (current is not None and current != value) or is_late:
            now = (
                f"runs without {key}" if is_late else f"has another {key}"
            )  # which may be a secret
            raise ConfigurationError(
                f"this session {now}, which cannot change while it runs",
                "choose another catalog name, or stop the session and start with these settings",
            )


def _catalog_of(key: str) -> str | None:
    """Return the name of the catalog that a setting is of."""
    name = key.removeprefix("spark.sql.catalog.")
    return None if name == key else name.partition(".")[0]
