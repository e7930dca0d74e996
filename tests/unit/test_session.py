"""The catalog that configure_spark sets up, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import (
    ConfigurationError,
    Keystore,
    NoSessionError,
    OrcKeys,
    ParquetKeys,
    configure_spark,
    session,
    settings,
    spark_conf,
)
from pyspark_iceberg_crypto.jvm import artifacts


@pytest.fixture(autouse=True)
def jar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "jar_path", lambda: Path("/lib/iceberg-crypto.jar"))


def catalog_conf(*args: Any, **kwargs: Any) -> dict[str, str]:
    options = configure_spark(SparkSession.builder, *args, **kwargs)._options
    prefix = "spark.sql.catalog."
    return {
        key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)
    }


def test_every_argument_is_a_catalog_property() -> None:
    found = catalog_conf(
        "lake",
        type="rest",
        uri="http://localhost:1",
        warehouse="file:/w",
        kms=Keystore("/keys.p12", password_env="P"),
        require_encryption=True,
        allowed_key_ids=["sales", "hr-*"],
        options={"io-impl": "com.IO"},
        path_access=False,
    )
    assert found == {
        "lake": "io.icebergcrypto.spark.EncryptedSparkCatalog",
        "lake.type": "rest",
        "lake.uri": "http://localhost:1",
        "lake.warehouse": "file:/w",
        "lake.encryption.kms-type": "keystore",
        "lake.encryption.kms.keystore.path": "/keys.p12",
        "lake.encryption.kms.keystore.password-env": "P",
        "lake.encryption.required": "true",
        "lake.encryption.allowed-key-ids": "sales, hr-*",
        "lake.io-impl": "com.IO",
    }


def test_paths_have_the_kms_of_the_first_catalog() -> None:
    """Iceberg takes a path to its catalog default_iceberg."""
    kms = Keystore("/keys.p12", password_env="P")
    rest = {
        "type": "rest",
        "uri": "http://localhost:1",
        "warehouse": "w",
        "require_encryption": True,
    }
    authentication = "encryption.metadata-authentication"
    own = {"header.Authorization": "s", "token": "s", authentication: "require"}
    lock = "hadoop.iceberg.tables.hadoop.lock-impl"
    login = "hadoop.fs.s3a.secret.key"
    storage = {lock: "com.L", login: "s"}
    options = {"io-impl": "com.IO", "table-default.encryption.key-id": "k1", **storage, **own}
    found = catalog_conf("lake", kms=kms, options=options, **rest)
    assert own.items() <= {k.removeprefix("lake."): v for k, v in found.items()}.items()
    assert {k: v for k, v in found.items() if k.startswith("default_iceberg")} == {
        "default_iceberg": "io.icebergcrypto.spark.EncryptedSparkCatalog",
        "default_iceberg.type": "hive",
        "default_iceberg.default-namespace": "default",
        "default_iceberg.cache-enabled": "false",
        "default_iceberg.encryption.kms-type": "keystore",
        "default_iceberg.encryption.kms.keystore.path": "/keys.p12",
        "default_iceberg.encryption.kms.keystore.password-env": "P",
        "default_iceberg.encryption.required": "true",
        "default_iceberg.table-default.encryption.key-id": "k1",
        f"default_iceberg.{lock}": "com.L",
        f"default_iceberg.{login}": "s",
    }
    found = catalog_conf("lake", kms=kms, options={authentication: "off"}, **rest)
    assert found[f"default_iceberg.{authentication}"] == "off"


def test_a_path_catalog_that_is_set_stays() -> None:
    builder = SparkSession.builder.config("spark.sql.catalog.default_iceberg", "com.Mine")
    configure_spark(builder, kms=Keystore("/1.p12", password_env="P"))
    assert builder._options["spark.sql.catalog.default_iceberg"] == "com.Mine"
    builder = configure_spark(SparkSession.builder, "one", kms=Keystore("/1.p12", password_env="P"))
    configure_spark(builder, "two", kms=Keystore("/2.p12", password_env="P"))
    paths = "spark.sql.catalog.default_iceberg.encryption.kms.keystore.path"
    assert builder._options[paths] == "/1.p12"
    configure_spark(builder, "one", kms=Keystore("/3.p12", password_env="P"))
    assert builder._options[paths] == "/3.p12"
    builder = configure_spark(SparkSession.Builder(), "one")
    assert "spark.sql.catalog.default_iceberg" not in builder._options
    configure_spark(builder, "two", kms=Keystore("/2.p12", password_env="P"))
    assert builder._options[paths] == "/2.p12"


def test_a_comma_in_an_allowed_key_id_is_its_own() -> None:
    found = catalog_conf(allowed_key_ids=["a,b", r"c\,d", r"e\\,f"])
    assert found["lake.encryption.allowed-key-ids"] == r"a\,b, c\,d, e\\\,f"


def test_hive_is_the_default_type() -> None:
    assert catalog_conf()["lake.type"] == "hive"


@pytest.mark.parametrize(
    "how", [{"catalog_impl": "com.C"}, {"options": {"catalog-impl": "com.C"}}], ids=str
)
def test_a_class_replaces_the_type(how: dict[str, Any]) -> None:
    found = catalog_conf(**how)
    assert found["lake.catalog-impl"] == "com.C"
    assert "lake.type" not in found


def test_the_session_catalog_is_set_up_too() -> None:
    found = catalog_conf(session_catalog=True)
    assert found["spark_catalog"] == "io.icebergcrypto.spark.EncryptedSessionCatalog"
    assert found["spark_catalog.type"] == found["lake.type"] == "hive"


def test_spark_catalog_by_name_is_the_session_catalog() -> None:
    found = catalog_conf("spark_catalog")
    assert found["spark_catalog"] == "io.icebergcrypto.spark.EncryptedSessionCatalog"
    assert "lake" not in found


class UsersOwn:
    """Not a child of Kms: what it has is enough."""

    def properties(self) -> dict[str, str]:
        return {"encryption.kms-impl": "com.X"}


def test_any_object_with_properties_is_a_kms() -> None:
    assert catalog_conf(kms=UsersOwn())["lake.encryption.kms-impl"] == "com.X"


class NotAKms:
    def __repr__(self) -> str:  # the same for each worker that collects the tests
        return "NotAKms()"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"type": "hbase"}, "unknown catalog type 'hbase'"),
        ({"type": "hive", "catalog_impl": "com.C"}, "both type='hive' and catalog_impl='com.C'"),
        ({"options": {"type": "hbase"}}, "unknown catalog type 'hbase'"),
        ({"options": {"type": "hive", "catalog-impl": "com.C"}}, "both type='hive' and"),
        ({"type": "hive", "options": {"catalog-impl": "com.C"}}, "both type='hive' and"),
        ({"catalog": "my-lake"}, "'my-lake' cannot be a catalog's name"),
        ({"catalog": "a.b"}, "'a.b' cannot be"),
        ({"catalog": ""}, "'' cannot be"),
        ({"catalog": "lake\n"}, "cannot be"),
        ({"kms": NotAKms()}, "kms must be a KMS"),
        ({"kms": {"encryption.kms-type": "keystore"}}, "kms must be a KMS"),
        ({"kms": Keystore}, "kms must be a KMS"),
        ({"allowed_key_ids": []}, "allowed_key_ids must be a list of key ids, not []"),
        ({"allowed_key_ids": "sales"}, "must be a list of key ids, not 'sales'"),
        ({"allowed_key_ids": ["a", " "]}, "must be a list of key ids"),
        ({"allowed_key_ids": ["a", None]}, "must be a list of key ids"),
        ({"uri": "a", "options": {"uri": "b"}}, "options sets uri to 'b'"),
        ({"type": "rest", "options": {"type": "jdbc"}}, "options sets type to 'jdbc'"),
        ({"options": {"clients": 4}}, "'clients' has a value of type int"),
        ({"options": {"encryption.kms.Vault.token": "s"}}, "kms.Vault.token would show a secret"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        configure_spark(SparkSession.builder, **arguments)
    assert says in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "arguments",
    [
        {"options": {"jdbc.password": 5318008}},
        {"options": {"credential": b"id:5318008"}},
        {"uri": "jdbc:x://u:5318008@db", "options": {"uri": "jdbc:x://db"}},
        {"uri": "jdbc:x://db", "options": {"uri": "jdbc:x://u:5318008@db"}},
    ],
    ids=str,
)
def test_a_refusal_shows_no_secret(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        spark_conf("lake", "jdbc", warehouse="/w", **arguments)
    assert "5318008" not in caught.value.message + caught.value.hint


def test_a_refusal_leaves_the_builder_as_it_was() -> None:
    builder = SparkSession.builder.config("a", "b")
    with pytest.raises(ConfigurationError):
        configure_spark(builder, type="hbase")
    assert builder._options == {"a": "b"}


def test_what_is_no_session_is_refused() -> None:
    with pytest.raises(NoSessionError, match="a str"):
        configure_spark("spark")  # type: ignore[type-var]


class Conf(dict[str, str]):
    set = dict.__setitem__


def running(
    monkeypatch: pytest.MonkeyPatch, conf: dict[str, str], loaded: tuple[str, ...] = ()
) -> SparkSession:
    """A session that runs with our jars."""
    made = SparkSession.__new__(SparkSession)
    monkeypatch.setattr(SparkSession, "conf", Conf(conf))
    monkeypatch.setattr(session._jvm, "require_session", lambda _: None)
    monkeypatch.setattr(session._jvm, "require_jars", lambda _: None)
    monkeypatch.setattr(session._jvm, "loaded_catalogs", lambda _: {"spark_catalog", *loaded})
    return made


EXTENDED = {"spark.sql.extensions": f"com.X,{artifacts.ICEBERG_EXTENSION}"}


def test_a_running_session_gets_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = running(monkeypatch, EXTENDED)
    store = Keystore("/k.p12", password_env="P")
    assert configure_spark(spark, type="rest", uri="u", kms=store) is spark
    assert spark.conf.get("spark.sql.catalog.lake.uri") == "u"
    configure_spark(spark, type="rest", uri="u", kms=store)  # the same again is no contradiction
    assert spark.conf.get("spark.sql.catalog.default_iceberg") == settings.CATALOG_CLASS


def test_a_running_session_with_another_catalog_of_that_name_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stock = {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}
    spark = running(monkeypatch, {**EXTENDED, **stock})
    with pytest.raises(ConfigurationError, match=r"has another spark\.sql\.catalog\.lake,"):
        configure_spark(spark)
    token = {"spark.sql.catalog.lake.token": "hvs.OLDSECRET"}
    spark = running(monkeypatch, {**EXTENDED, **token})
    with pytest.raises(ConfigurationError, match=r"has another .*token") as caught:
        configure_spark(spark, options={"token": "new"})
    assert "hvs.OLDSECRET" not in str(caught.value)


@pytest.mark.parametrize("catalog", ["lake", "default_iceberg"])
@pytest.mark.parametrize(
    "more",
    [
        {"require_encryption": True},
        {"allowed_key_ids": ["sales"]},
        {"options": {"table-default.encryption.key-id": "sales"}},
    ],
    ids=str,
)
def test_a_catalog_that_is_loaded_gets_no_more_rules(
    more: dict[str, Any], catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would do nothing. Where it is not loaded yet, they reach the catalog of paths, too."""
    kms = Keystore("/k.p12", password_env="P")
    spark = running(monkeypatch, dict(EXTENDED))
    configure_spark(spark, kms=kms)
    has = dict(spark.conf.items())  # type: ignore[attr-defined]
    spark = running(monkeypatch, has, loaded=(catalog,))
    configure_spark(spark, kms=kms)
    with pytest.raises(ConfigurationError, match=rf"runs without spark\.sql\.catalog\.{catalog}\."):
        configure_spark(spark, kms=kms, **more)
    assert dict(spark.conf.items()) == has  # type: ignore[attr-defined]
    spark = running(monkeypatch, has)
    configure_spark(spark, kms=kms, **more)
    assert len(spark.conf) == len(has) + 2  # type: ignore[arg-type]


SECRETS = {
    "uri": "jdbc:postgresql://u:s@db/x",
    "credential": "id:s",
    "header.Authorization": "s",
}


def test_spark_hides_the_secrets_of_a_catalog() -> None:
    """And what it hides otherwise."""
    prefix = "spark[.]sql[.]catalog[.]lake[.]"
    names = [
        prefix + name.replace(".", "[.]") for name in ("uri", "credential", "header.Authorization")
    ]
    expected = "|".join(["(?i)secret|password|token|access[.]?key", *names])
    builder = configure_spark(SparkSession.Builder(), options={**SECRETS, "token": "s"})
    assert builder._options["spark.redaction.regex"] == expected
    assert settings.spark_conf(options=SECRETS)["spark.redaction.regex"] == expected
    once = dict(builder._options)
    assert configure_spark(builder, options={**SECRETS, "token": "s"})._options == once
    by_hand = SparkSession.Builder().config("spark.redaction.regex", "mine")
    configure_spark(by_hand, options={"token": "s"})
    assert by_hand._options["spark.redaction.regex"] == f"mine|{prefix}token"
    assert "spark.redaction.regex" not in configure_spark(SparkSession.Builder())._options


def test_what_spark_submit_was_given_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a properties file, for example, which Python does not see."""
    launched = {
        "spark.plugins": "com.X",
        "spark.sql.catalog.default_iceberg": "com.Mine",
        "spark.sql.catalog.lake.uri": "there",
    }
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(session._jvm, "launched_conf", launched.get)
    monkeypatch.setattr(session._jvm, "require_jars", lambda: None)
    kms = Keystore("/k.p12", password_env="P")
    builder = configure_spark(SparkSession.Builder(), type="rest", kms=kms, metrics=True)
    assert builder._options["spark.plugins"] == f"com.X,{settings.METRICS_PLUGIN}"
    assert "spark.sql.catalog.default_iceberg" not in builder._options


def test_a_running_session_keeps_its_session_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = running(monkeypatch, EXTENDED)
    with pytest.raises(
        ConfigurationError, match=r"runs without spark\.sql\.catalog\.spark_catalog"
    ):
        configure_spark(spark, session_catalog=True)


def test_a_running_session_needs_icebergs_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="without Iceberg's SQL extension"):
        configure_spark(running(monkeypatch, {}))


def test_a_running_session_gets_no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"without the metrics plugin in spark\.plugins"):
        configure_spark(running(monkeypatch, EXTENDED), metrics=True)
    has = {**EXTENDED, "spark.plugins": f"com.X, {settings.METRICS_PLUGIN}"}
    configure_spark(running(monkeypatch, has), metrics=True)


def test_a_running_session_cannot_begin_to_encrypt_its_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigurationError, match=r"without spark\.io\.encryption\.enabled=true"):
        configure_spark(running(monkeypatch, EXTENDED), local_disk_encryption=True)
    has = {**EXTENDED, "spark.io.encryption.enabled": "true"}
    configure_spark(running(monkeypatch, has), local_disk_encryption=True)


def test_a_running_session_gets_no_checks_of_orc_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them, a write that names no key would be plaintext in silence."""
    store, keys = Keystore("/k.p12", password_env="P"), OrcKeys(columns={"ssn": "k"})
    with pytest.raises(ConfigurationError, match="started without .*OrcChecks"):
        configure_spark(running(monkeypatch, EXTENDED), kms=store, orc_columns=keys)
    extensions = f"{EXTENDED[settings.EXTENSIONS]},{settings.ORC_EXTENSION}"
    spark = running(monkeypatch, {settings.EXTENSIONS: extensions})
    configure_spark(spark, kms=store, orc_columns=keys)
    assert spark.conf.get("orc.encrypt") == "k:ssn"


def test_a_running_session_gets_no_checks_of_parquet_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them, an overwriting statement with a misspelt column loses what was there."""
    store, keys = Keystore("/k.p12", password_env="P"), ParquetKeys(uniform="k")
    with pytest.raises(ConfigurationError, match="started without .*ParquetWrites") as told:
        configure_spark(running(monkeypatch, EXTENDED), kms=store, parquet_columns=keys)
    assert settings.PARQUET_EXTENSION in told.value.hint
    extensions = f"{EXTENDED[settings.EXTENSIONS]},{settings.PARQUET_EXTENSION}"
    spark = running(monkeypatch, {settings.EXTENSIONS: extensions})
    configure_spark(spark, kms=store, parquet_columns=keys)
    assert spark.conf.get("parquet.encryption.uniform.key") == "k"


@pytest.mark.parametrize(
    ("type", "given", "missing"),
    [
        ("rest", {}, "uri"),
        ("hadoop", {"uri": "x"}, "warehouse"),
        ("jdbc", {"uri": "jdbc:x"}, "warehouse"),
        ("jdbc", {"warehouse": "/w"}, "uri"),
        ("nessie", {"warehouse": "/w"}, "uri"),
    ],
)
def test_a_catalog_without_its_address_is_refused(
    type: str,  # noqa: A002
    given: dict[str, str],
    missing: str,
) -> None:
    with pytest.raises(ConfigurationError, match=f"catalog lake of type {type} has no {missing}"):
        catalog_conf(type=type, options=given)
    assert catalog_conf(type=type, options={**given, missing: "there"})
    builder = SparkSession.Builder().config(f"spark.sql.catalog.lake.{missing}", "there")
    configure_spark(builder, type=type, options=given)
