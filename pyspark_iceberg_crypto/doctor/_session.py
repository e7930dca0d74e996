"""What stands between a Spark session and its master keys, step by step, up to a round trip with each key.

On request it also looks at tables: see `_tables`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto.doctor._report import DoctorReport, DoctorStep, Status
from pyspark_iceberg_crypto.doctor._tables import diagnose_tables
from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    IcebergCryptoError,
    JarMissingError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    first_line,
)
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.jvm._typed import UNTYPED
from pyspark_iceberg_crypto.kms import BY_TYPE
from pyspark_iceberg_crypto.reports._text import plural
from pyspark_iceberg_crypto.settings import (
    DISK_ENCRYPTION,
    EXTENSIONS,
    ORC_EXTENSION,
    PARQUET_EXTENSION,
    REDACTION,
    redaction,
)
from pyspark_iceberg_crypto.verbs.metrics import KmsMetrics, kms_metrics

KMS_TYPE = "encryption.kms-type"
ALLOWED = "encryption.allowed-key-ids"
CACHE_TTL = "encryption.kms.cache.ttl-ms"
CACHE_TTL_DEFAULT = 3_600_000
# The library that a KMS type needs in the JVM, and a class of it.
LIBRARIES = {
    "aws": ("the AWS SDK", "software.amazon.awssdk.services.kms.KmsClient"),
    "azure": ("Azure's login library", "com.azure.identity.DefaultAzureCredentialBuilder"),
    "gcp": ("Google's login library", "com.google.auth.oauth2.GoogleCredentials"),
}
# A catalog that encrypts every new table names its key in one of these.
TABLE_KEYS = ("table-override.encryption.key-id", "table-default.encryption.key-id")

TRIED_OF_TABLES = 10  # master keys, each one wrap and one unwrap

# Settings that give variables to the driver or to executors.
SHOWN_VARIABLES = (
    "spark.executorEnv.",
    "spark.yarn.appMasterEnv.",
    "spark.kubernetes.driverEnv.",
)
# Spark copies this one into its Hadoop configuration, which goes to executors with every table.
TRAVELLING_SECRET = "AWS_SECRET_ACCESS_KEY"  # noqa: S105 (a variable's name)

# Two ways of Spark to encrypt what its processes send; each works only where they know each other by a secret.
BY_AUTHENTICATION = ("spark.network.crypto.enabled", "spark.authenticate.enableSaslEncryption")

IGNORE_CORRUPT = "spark.sql.files.ignoreCorruptFiles"

JAVA, JARS, ENVIRONMENT = "Java and Spark", "jars", "environment"
DISKS, WIRE = "local disks", "between processes"
PARQUET, ORC = "Parquet keys", "ORC keys"  # only of a session that has settings for them
CATALOG, CACHE = "catalog", "key cache"
BEFORE_KMS = (JAVA, JARS, ENVIRONMENT, DISKS, WIRE, CATALOG, CACHE)
SETTINGS, NETWORK, LOGIN = "KMS settings", "KMS network", "login"
PERMISSION, KEY, ROUND_TRIP = "permission", "key", "round trip"
# What a call of the KMS goes through. An error's type says how far it came.
CHAIN = (SETTINGS, NETWORK, LOGIN, PERMISSION, KEY, ROUND_TRIP)
ASKED = (NETWORK, LOGIN, PERMISSION, KEY)  # these need an answer of the KMS, or the lack of one


def diagnose(
    spark: SparkSession,
    catalog: str = "lake",
    *,
    key_ids: Iterable[str] = (),
    tables: str | Iterable[str] | None = None,
    progress: bool | None = None,
) -> DoctorReport:
    """Check each step from a session to its master keys. What is wrong is in the report, not raised.

    Nothing is written: each key wraps and unwraps a random trial key, past the cache. No table is needed.

    Args:
        spark: a session with the catalog.
        catalog: the catalog's name.
        key_ids: the master keys to try. Without any: the one that the catalog gives to new tables or, with `tables`,
            up to ten that these tables name.
        tables: also examine tables: "*" for all of the catalog, or names of namespaces ("lake.db") and tables
            ("lake.db.t"). A table costs a load of its metadata and the first bytes of one manifest list; its data
            files are not read.
        progress: whether to show on stderr how many tables were examined; None: in a terminal and in a
            notebook.

    Raises:
        ConfigurationError: key_ids is a text.
        NoSessionError: there is no session, or it was stopped.
        SparkConnectError: the session is a Spark Connect client.
    """
    _jvm.require_session(spark)
    if isinstance(key_ids, str):
        raise ConfigurationError(
            f"key_ids must be a list of key ids, not {key_ids!r}", f"key_ids=[{key_ids!r}]"
        )
    asked = list(dict.fromkeys(key_ids))
    if tables is None:
        return DoctorReport(catalog, list(_steps(spark, catalog, asked)))
    examined = diagnose_tables(spark, catalog if tables == "*" else tables, progress=progress)
    asked = asked or examined.key_ids[:TRIED_OF_TABLES]
    return DoctorReport(catalog, list(_steps(spark, catalog, asked)), examined)


def not_started(catalog: str, error: IcebergCryptoError) -> DoctorReport:
    """Report what is known of a Spark that did not start."""
    return DoctorReport(catalog, [_failed(JAVA, error), *_not_reached((*BEFORE_KMS[1:], *CHAIN))])


def _steps(spark: SparkSession, catalog: str, key_ids: list[str]) -> Iterator[DoctorStep]:
    yield DoctorStep(JAVA, Status.OK, f"Java {_jvm.java_version(spark)}, Spark {spark.version}")
    settings = _jvm.session_settings(spark)
    properties = _jvm.catalog_properties(spark, catalog)
    try:
        yield _jars(spark, properties.get(KMS_TYPE, "").lower())
    except IcebergCryptoError as error:
        yield _failed(JARS, error)
        yield from _not_reached((*BEFORE_KMS[2:], *CHAIN))
        return
    yield _environment(spark, catalog, settings, properties)
    yield _disks(settings)
    yield _wire(settings)
    yield from _columns(spark, settings, PARQUET, "examine_parquet", PARQUET_EXTENSION)
    yield from _columns(spark, settings, ORC, "examine_orc", ORC_EXTENSION)
    key_ids = key_ids or [properties[name] for name in TABLE_KEYS if name in properties][:1]
    try:
        metrics = _load(spark, catalog)
    except IcebergCryptoError as error:
        if _step_of(error) not in ASKED:
            yield _failed(CATALOG, error)
            yield from _not_reached((CACHE, *CHAIN))
            return
        # A KMS that is asked when the catalog is loaded, as a keystore is.
        yield DoctorStep(CATALOG, Status.OK, catalog)
        yield _cache(properties)
        yield from _chain(error, None)
        return
    yield DoctorStep(CATALOG, Status.OK, f"{catalog}, with master keys in {metrics.kms}")
    yield _cache(properties)

    for key_id in key_ids:
        yield from _try(spark, catalog, key_id)
    if not key_ids:
        for name in CHAIN:
            told = ("no key was named", "name one: --key-id sales") if name == KEY else ("", "")
            yield DoctorStep(name, Status.NOT_REACHED, *told)


def _load(spark: SparkSession, catalog: str) -> KmsMetrics:
    """Have Spark load the catalog, which makes its KMS client."""
    try:
        return kms_metrics(spark, catalog)
    except UNTYPED as error:
        raise IcebergCryptoError(
            f"catalog {catalog} cannot be loaded: {first_line(error)}",
            f"check spark.sql.catalog.{catalog}.type, .uri and .warehouse, and that the catalog's "
            "server can be reached",
        ) from error


def _try(spark: SparkSession, catalog: str, key_id: str) -> Iterator[DoctorStep]:
    """Have one key wrap and unwrap."""
    before = kms_metrics(spark, catalog)
    try:
        try:
            _jvm.run(spark, "check_key", catalog=catalog, key_id=key_id)
        except UNTYPED as error:
            raise IcebergCryptoError(first_line(error)) from error
    except IcebergCryptoError as error:
        yield from _chain(error, key_id)
        return
    after = kms_metrics(spark, catalog)
    for name in CHAIN[:-1]:
        yield DoctorStep(name, Status.OK, key_id=key_id)
    took = (
        f"wrapped in {after.wrap_ms - before.wrap_ms:.0f} ms, "
        f"unwrapped in {after.unwrap_ms - before.unwrap_ms:.0f} ms"
    )
    retries = after.retries - before.retries
    if retries:
        yield DoctorStep(
            ROUND_TRIP,
            Status.WARNING,
            f"{took}, after {plural(retries, 'failed attempt')}",
            "the KMS answered late, or refused because of its load: check its log and its quota",
            key_id,
        )
    else:
        yield DoctorStep(ROUND_TRIP, Status.OK, took, key_id=key_id)


def _jars(spark: SparkSession, kms_type: str) -> DoctorStep:
    """Look for our jar, Iceberg's, and what the KMS type needs.

    Raises:
        JarMissingError: one is missing.
    """
    _jvm.require_jars(spark)
    found = [f"{jar} {version}" for jar, version in _jvm.jar_versions(spark).items()]
    if kms_type in LIBRARIES:
        library, class_name = LIBRARIES[kms_type]
        if not _jvm.has_class(spark, class_name):
            packages = ",".join(BY_TYPE[kms_type].packages)
            raise JarMissingError(
                f"{KMS_TYPE}={kms_type} needs {library}, which is not on Spark's class path (no class "
                f"{class_name})",
                f"start Spark with --packages {packages}; configure_spark adds it by itself",
            )
        found.append(library)
    found.append(f"AES-GCM of {_jvm.cipher_provider(spark)}")
    return DoctorStep(JARS, Status.OK, ", ".join(found))


def _environment(
    spark: SparkSession, catalog: str, settings: dict[str, str], properties: dict[str, str]
) -> DoctorStep:
    """Look for secrets that Spark itself would pass on or show."""
    found, hints = [], []
    if _jvm.environment(spark, TRAVELLING_SECRET) is not None:
        found.append(
            f"{TRAVELLING_SECRET} is set: Spark copies it into its Hadoop configuration, and tables "
            "carry that to executors"
        )
        hints.append("use a role of the host, or a profile of ~/.aws (AWS_PROFILE)")
    for name, value in properties.items():
        if name.startswith("encryption.kms.") and name.endswith("-env"):
            for setting in (f"{prefix}{value}" for prefix in SHOWN_VARIABLES):
                if setting in settings:
                    found.append(
                        f"{setting} holds a secret: Spark's settings are in its event log and UI"
                    )
                    hints.append(
                        f"set {value} in the environment of each host of Spark, or use a file"
                    )
        if redaction({f"spark.sql.catalog.{catalog}.{name}": value}, settings.get(REDACTION)):
            found.append(f"{name} holds a secret: Spark shows it in its event log and UI")
            hints.append(f"start Spark with its name in {REDACTION}, as configure_spark does")
    if found:
        return DoctorStep(ENVIRONMENT, Status.WARNING, "; ".join(found), "; ".join(hints))
    return DoctorStep(ENVIRONMENT, Status.OK, "holds no secret that Spark would pass on")


def _columns(
    spark: SparkSession, settings: dict[str, str], name: str, operation: str, extension: str
) -> Iterator[DoctorStep]:
    """Look at the keys of Spark's own Parquet or ORC files, and have each wrap and unwrap."""
    try:
        found = _jvm.run(spark, operation)
    except IcebergCryptoError as error:
        yield _failed(name, error)
        return
    except UNTYPED as error:
        yield _failed(name, IcebergCryptoError(first_line(error)))
        return
    if found is None:
        return
    warnings = found["warnings"]
    if extension not in settings.get(EXTENSIONS, ""):
        hint = f"start Spark with it: --conf {EXTENSIONS}=...,{extension}"
        if name == ORC:  # nothing else refuses, as Parquet's crypto factory does in tasks
            problem = f"{EXTENSIONS} lacks {extension}: a write without orc.encrypt is plaintext, whatever is set"
            yield _failed(name, ConfigurationError(problem, hint))
            return
        problem = f"{EXTENSIONS} lacks {extension}: writes are not checked before they begin"
        warnings.append({"problem": problem, "hint": hint})
    if _is_on(settings, IGNORE_CORRUPT):
        problem = f"{IGNORE_CORRUPT}=true: Spark silently skips files that were changed or may not be read"
        warnings.append({"problem": problem, "hint": "leave it out"})
    for warning in warnings:
        yield DoctorStep(name, Status.WARNING, warning["problem"], warning["hint"])
    if not warnings:
        keys = ", ".join(found["keys"])
        yield DoctorStep(name, Status.OK, keys or "none is named: files can be read")


def _disks(settings: dict[str, str]) -> DoctorStep:
    """Return whether Spark encrypts what it writes to local disks."""
    if _is_on(settings, DISK_ENCRYPTION):
        return DoctorStep(DISKS, Status.OK, "Spark encrypts its shuffle, spill and cache files")
    return DoctorStep(
        DISKS,
        Status.WARNING,
        f"rows of encrypted tables, and keys while some of Iceberg's procedures run, are in plaintext in the files "
        f"that Spark shuffles, spills and caches to ({DISK_ENCRYPTION}=false)",
        f"start Spark with --conf {DISK_ENCRYPTION}=true, or with configure_spark(..., local_disk_encryption=True)",
    )


def _wire(settings: dict[str, str]) -> DoctorStep:
    """Return whether Spark encrypts what its processes send each other."""
    if re.fullmatch(r"local(\[[^]]*])?", settings.get("spark.master", "local")):
        return DoctorStep(WIRE, Status.OK, "the driver is the only process")
    authenticates = _is_on(settings, "spark.authenticate")
    asked = [name for name in BY_AUTHENTICATION if _is_on(settings, name)]
    if _is_on(settings, "spark.ssl.rpc.enabled") or (authenticates and asked):
        return DoctorStep(
            WIRE, Status.OK, "Spark encrypts what driver and executors send each other"
        )
    why = (
        f"{asked[0]} has no effect without spark.authenticate=true"
        if asked
        else f"{BY_AUTHENTICATION[0]}=false"
    )
    return DoctorStep(
        WIRE,
        Status.WARNING,
        f"rows and data keys travel between driver and executors in plaintext ({why})",
        f"start Spark with spark.authenticate=true and {BY_AUTHENTICATION[0]}=true; a standalone cluster needs "
        "spark.authenticate.secret, on its master and workers, too",
    )


def _is_on(settings: dict[str, str], name: str) -> bool:
    return settings.get(name, "false").strip().lower() == "true"


def _cache(properties: dict[str, str]) -> DoctorStep:
    ttl = int(properties.get(CACHE_TTL, CACHE_TTL_DEFAULT))
    if ttl == 0:
        return DoctorStep(
            CACHE,
            Status.WARNING,
            f"off ({CACHE_TTL}=0): every load of a table asks the KMS, and none works while it is down",
            "leave the property out: keys then stay in memory for an hour",
        )
    return DoctorStep(CACHE, Status.OK, f"keys stay in memory for {ttl / 60_000:g} min")


def _chain(error: IcebergCryptoError, key_id: str | None) -> Iterator[DoctorStep]:
    """Go through the steps of a key, of which one failed."""
    at = CHAIN.index(_step_of(error))
    for number, name in enumerate(CHAIN):
        if number == at:
            yield _failed(name, error, key_id)
        else:
            yield DoctorStep(name, Status.OK if number < at else Status.NOT_REACHED, key_id=key_id)


def _step_of(error: IcebergCryptoError) -> str:
    match error:
        case ConfigurationError():
            return SETTINGS
        case KmsUnavailableError():
            return NETWORK
        case LoginFailedError():
            return LOGIN
        case AccessDeniedError() if ALLOWED in error.message:  # the KMS was not asked
            return SETTINGS
        case AccessDeniedError():  # its parent
            return PERMISSION
        case KeyNotFoundError() | KeyDisabledError():
            return KEY
        case _:
            return ROUND_TRIP


def _failed(name: str, error: IcebergCryptoError, key_id: str | None = None) -> DoctorStep:
    return DoctorStep(name, Status.FAILED, error.message, error.hint, key_id)


def _not_reached(names: Sequence[str]) -> list[DoctorStep]:
    return [DoctorStep(name, Status.NOT_REACHED) for name in names]
