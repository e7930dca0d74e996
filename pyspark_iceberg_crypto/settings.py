"""The settings of a catalog whose tables can be encrypted, as Spark reads them; and the jar. Needs no Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from inspect import isclass
from pathlib import Path

from pyspark_iceberg_crypto._names import PATH_CATALOG, SESSION_CATALOG
from pyspark_iceberg_crypto.columns import orc, parquet
from pyspark_iceberg_crypto.columns.orc import OrcKeys
from pyspark_iceberg_crypto.columns.parquet import ParquetKeys
from pyspark_iceberg_crypto.errors import ConfigurationError, JarMissingError
from pyspark_iceberg_crypto.jvm.artifacts import build_for
from pyspark_iceberg_crypto.kms import BY_TYPE, KmsSettings
from pyspark_iceberg_crypto.kms._properties import refuse_secrets

CATALOG_CLASS = "io.icebergcrypto.spark.EncryptedSparkCatalog"
SESSION_CATALOG_CLASS = "io.icebergcrypto.spark.EncryptedSessionCatalog"
# What Iceberg itself gives to the catalog of paths.
PATH_CATALOG_OPTIONS = {"type": "hive", "default-namespace": "default", "cache-enabled": "false"}
# Names the catalog whose KMS and rules are those of paths; no other changes them.
PATHS_LIKE = "spark.iceberg-crypto.paths-like"
# What a path needs of a catalog beside its KMS: rules for tables, and Hadoop's settings for the storage and its locks.
OF_PATHS = ("encryption.", "table-default.", "table-override.", "hadoop.")
# What the catalog of paths, of Hive's kind, has no use for, or refuses.
OF_KIND = {"encryption.catalog-type", "encryption.catalog-impl"}
OF_KIND_VALUES = {("encryption.metadata-authentication", "require")}  # a path's default
CATALOG_TYPES = ("hive", "rest", "jdbc", "hadoop", "glue", "nessie")
# The properties without which Iceberg's catalog of a type does not start.
LOCATIONS = {
    "rest": ("uri",),
    "jdbc": ("uri", "warehouse"),
    "hadoop": ("warehouse",),
    "nessie": ("uri", "warehouse"),
}

# Spark hands on what stands behind the first part to Hadoop's configuration, and with it to executors.
HADOOP_PREFIX = "spark.hadoop."
SESSION_PREFIX = f"{HADOOP_PREFIX}iceberg-crypto."
# Which setting says that keys for columns are this project's, what its value starts with, and the keys' settings.
COLUMN_KEYS = (
    (
        "parquet.crypto.factory.class",
        parquet.FACTORY,
        tuple(parquet.session_conf(ParquetKeys(), "")),
    ),
    ("orc.key.provider", orc.PROVIDER, tuple(orc.session_conf(OrcKeys(), {}, ""))),
)

# What Iceberg's own names for a KMS start with; KmsProperties.java has the same list.
ICEBERG_KMS = (
    "adls.token-credential-provider",
    "azure.keyvault.",
    "client.",
    "http-client.",
    "kms.",
)

EXTENSIONS = "spark.sql.extensions"
PARQUET_EXTENSION = "io.icebergcrypto.spark.parquet.ParquetWrites"
ORC_EXTENSION = "io.icebergcrypto.spark.orc.OrcChecks"
PLUGINS = "spark.plugins"
METRICS_PLUGIN = "io.icebergcrypto.spark.MetricsPlugin"
DISK_ENCRYPTION = "spark.io.encryption.enabled"
# The settings whose values Spark hides; it reads this when it starts.
REDACTION = "spark.redaction.regex"
REDACTED = "(?i)secret|password|token|access[.]?key"  # its default

_SECRET = re.compile(
    r"(password|passwd|passphrase|secret|token|credential|credentials|authorization|cookie|pin"
    r"|(access|account|api|secret|private|provided|encryption|decryption|sse)[._-]?key)"
    r"((\.[^.]+){1,3}\.(blob|dfs)\.[\w.-]+)?$"  # of one account of Azure, in Hadoop's settings
    r"|sas-token|connection-string|fs\.azure\.sas\.(?!token\.provider)",
    re.IGNORECASE,
)
_PASSWORD_IN_ADDRESS = re.compile(r"//[^/?#\s]*:[^/?#\s]*@|[?&;]password=", re.IGNORECASE)


def spark_conf(
    catalog: str = "lake",
    type: str | None = None,  # noqa: A002
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
    packages: bool = True,
    spark: str | None = None,
) -> dict[str, str]:
    """Return the settings that `configure_spark` would make, for a Spark that something else starts.

    That is spark-submit (as ``--conf key=value``), spark-defaults.conf, the server of Spark Connect, Airflow, Livy, or
    an operator on Kubernetes. It needs no Spark. No setting holds a secret of a KMS: the driver and the executors read
    those from where they name them, such as a file or an environment variable. Secrets among ``options``, such as
    the credential of a REST catalog, are in the settings as given: keep them in a file that only its owner may read.

    Args:
        catalog: see `configure_spark`, as for all that is not explained here.
        type: see there.
        catalog_impl: see there.
        uri: see there.
        warehouse: see there.
        kms: see there.
        session_catalog: see there.
        path_access: see there.
        require_encryption: see there.
        allowed_key_ids: see there.
        options: see there.
        metrics: see there.
        parquet_columns: see there.
        orc_columns: see there.
        local_disk_encryption: see there.
        packages: name this project's jar, Iceberg's and the KMS's in ``spark.jars.packages``, by their Maven
            coordinates. False: they are there, or come by ``--jars``, see `jar_path`.
        spark: the version of the Spark that will be started, such as ``"4.0"``, for these coordinates, and of its Scala
            where it is not that of pip's (``"3.5_2.13"``). None: the version of the Spark that is installed here, and
            the newest if none is installed.

    Returns:
        Settings by their names. If ``spark.sql.extensions`` or ``spark.plugins`` has others already, join them with
        a comma; ``spark.redaction.regex``, with ``|``.

    Raises:
        ConfigurationError: an argument is wrong, or contradicts another; or there is no build for this Spark.
    """
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
    build = build_for(spark)
    jars = {}
    if packages:
        needed = [build.coordinate, *packages_of(kms, properties)]
        jars["spark.jars.packages"] = ",".join(needed)
    started = {PLUGINS: METRICS_PLUGIN} if metrics else {}
    if local_disk_encryption:
        started[DISK_ENCRYPTION] = "true"
    conf = conf_of(catalog, properties, session_catalog, path_access)
    conf.update(column_conf(parquet_columns, orc_columns, properties))
    conf |= redaction(conf)
    extensions = [*build.extensions, *column_extensions(parquet_columns, orc_columns)]
    return {**jars, EXTENSIONS: ",".join(extensions), **started, **conf}


def jar_path(*, spark: str | None = None) -> Path:
    """Return the path of a jar that this package carries.

    Args:
        spark: the version of the Spark that it is for, such as ``"4.0"`` or, with its Scala's, ``"3.5_2.13"``. None: of
            the Spark that is installed here, and the newest if none is installed.

    Raises:
        ConfigurationError: there is no build for this Spark.
        JarMissingError: the package does not carry it, like a source tree that was never built.
    """
    build = build_for(spark)
    jars = sorted((Path(__file__).parent / "jars").glob(f"{build.artifact}-*.jar"))
    if not jars:
        raise JarMissingError(
            f"this installation of pyspark-iceberg-crypto has no jar for Spark {build.spark}",
            "in a source tree run `make jar`, for an older Spark `make jars`; otherwise pip install it again, with "
            "ICEBERG_CRYPTO_SPARK=all in the environment where pip builds it",
        )
    return jars[-1]


def packages_of(kms: KmsSettings | None, properties: dict[str, str]) -> Sequence[str]:
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


def catalog_properties(
    type: str | None,  # noqa: A002
    catalog_impl: str | None,
    uri: str | None,
    warehouse: str | None,
    kms: KmsSettings | None,
    require_encryption: bool,
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
    if require_encryption:
        named["encryption.required"] = "true"
    if allowed_key_ids is not None:
        named["encryption.allowed-key-ids"] = _key_id_list(allowed_key_ids)
    given = {key: value for key, value in named.items() if value is not None}
    for key, value in options.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ConfigurationError(
                f"options must be text to text, and {key!r} has a value of type {value.__class__.__name__}",
                f"for example options={{{str(key)!r}: '...'}}",
            )
        if given.get(key, value) != value:
            is_hidden = holds_secret(key, value) or holds_secret(key, given[key])
            one, other = ("a value", "another") if is_hidden else (repr(value), repr(given[key]))
            raise ConfigurationError(
                f"options sets {key} to {one}, and an argument sets it to {other}",
                "set it in one place",
            )
    refuse_secrets(options)
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


def is_secret(name: str) -> bool:
    """Return whether the value of a setting of this name is a secret. One that ends with -env or -file is not."""
    return _SECRET.search(name) is not None


def holds_secret(name: str, value: str) -> bool:
    """Return whether a setting is a secret, by its name or as an address with a password."""
    return is_secret(name) or _PASSWORD_IN_ADDRESS.search(value) is not None


def redaction(conf: Mapping[str, str], has: str | None = None) -> dict[str, str]:
    """Return what has Spark hide the secrets among settings, in its event log and its UI; empty if it does already.

    Args:
        conf: the settings.
        has: the value of `REDACTION`; None: Spark's default.
    """
    regex = has or REDACTED
    shown = [key for key, value in conf.items() if _is_shown(key, value, regex)]
    names = [re.escape(key).replace(r"\.", "[.]").replace(r"\-", "-") for key in shown]
    return {REDACTION: "|".join([regex, *names])} if shown else {}


def _is_shown(key: str, value: str, regex: str) -> bool:
    """Return whether it is a secret that Spark does not hide: it looks for these in names and in values."""
    return holds_secret(key, value) and not _finds(regex, key) and not _finds(regex, value)


def _finds(regex: str, text: str) -> bool:
    try:
        return re.search(regex, text) is not None
    except re.error:  # of Java's alone
        return False


def session_kms(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a KMS, given as a catalog's properties, for all of a session that is not in a catalog."""
    return {SESSION_PREFIX + key: v for key, v in properties.items() if _is_of_kms(key)}


def column_extensions(
    parquet_columns: ParquetKeys | None, orc_columns: OrcKeys | None
) -> list[str]:
    """Return the extensions that check what is written with keys for columns."""
    given = {PARQUET_EXTENSION: parquet_columns, ORC_EXTENSION: orc_columns}
    return [extension for extension, keys in given.items() if keys is not None]


def column_conf(
    parquet_columns: ParquetKeys | None,
    orc_columns: OrcKeys | None,
    properties: Mapping[str, str],
) -> dict[str, str]:
    """Return the settings of a session whose own Parquet and ORC files have keys.

    Raises:
        ConfigurationError: there is no KMS among a catalog's properties, or these are no keys.
    """
    kms = session_kms(properties)
    conf: dict[str, str] = {}
    if parquet_columns is not None:
        _check_keys("parquet_columns", parquet_columns, ParquetKeys, properties)
        conf |= parquet.session_conf(parquet_columns, HADOOP_PREFIX)
    if orc_columns is not None:
        _check_keys("orc_columns", orc_columns, OrcKeys, properties)
        conf |= orc.session_conf(orc_columns, kms, HADOOP_PREFIX)
    return {**kms, **conf} if conf else {}


def _check_keys(name: str, keys: object, kind: type, properties: Mapping[str, str]) -> None:
    if not isinstance(keys, kind):
        raise ConfigurationError(
            f"{name} must be {kind.__name__}(...), not {keys!r}",
            f"for example {name}={kind.__name__}(columns={{'ssn': 'k2'}}, ...)",
        )
    if not names_kms(properties):
        raise ConfigurationError(
            f"{name} needs a KMS",
            "for example kms=Keystore('keys.p12', password_env='...')",
        )


def names_kms(properties: Mapping[str, str]) -> bool:
    """Return whether a catalog's properties name a KMS."""
    return bool({"encryption.kms-type", "encryption.kms-impl"} & properties.keys())


def _is_of_kms(key: str) -> bool:
    return key.startswith(("encryption.kms", *ICEBERG_KMS)) or key == "encryption.allowed-key-ids"


def conf_of(
    catalog: str, properties: dict[str, str], session_catalog: bool, path_access: bool
) -> dict[str, str]:
    """Return the settings of a catalog; of the session's and of that of paths, too, where they are wanted."""
    conf = _catalog_conf(_check_name(catalog), properties)
    if session_catalog:
        conf.update(_catalog_conf(SESSION_CATALOG, properties))
    if path_access and names_kms(properties):
        conf.update(_catalog_conf(PATH_CATALOG, _path_properties(properties)))
        conf[PATHS_LIKE] = catalog
    return conf


def _catalog_conf(catalog: str, properties: dict[str, str]) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{catalog}"
    implementation = SESSION_CATALOG_CLASS if catalog == SESSION_CATALOG else CATALOG_CLASS
    return {prefix: implementation, **{f"{prefix}.{key}": v for key, v in properties.items()}}


def _path_properties(properties: dict[str, str]) -> dict[str, str]:
    """Return a catalog's KMS, rules for tables and Hadoop's settings, without what is of its own kind, place or login.

    The storage's logins among Hadoop's settings go along.
    """
    kept = {
        key: value
        for key, value in properties.items()
        if (_is_of_kms(key) or key.startswith(OF_PATHS))
        and key not in OF_KIND
        and (key, value.strip().lower()) not in OF_KIND_VALUES
    }
    return {**kept, **PATH_CATALOG_OPTIONS}
