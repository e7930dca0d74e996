"""What all KMSs have in common: the trial of keys, the counters, client libraries that are missing."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doubles.in_process import DoubleKms, answering

import pyspark_iceberg_crypto
from pyspark_iceberg_crypto import (
    AccessDeniedError,
    AwsKms,
    AzureKeyVault,
    ConfigurationError,
    GcpKms,
    KeyDisabledError,
    KeyNotFoundError,
    Kms,
    Vault,
    kms,
)
from pyspark_iceberg_crypto.kms import BY_TYPE, _extras
from pyspark_iceberg_crypto.kms._settings import as_text, settings

STORE = DoubleKms("https://kms")
VAULT = Vault("https://v", token_env="T", namespace="team")
SPARK: Any = "a session"


@pytest.fixture(autouse=True)
def no_keys() -> Iterator[None]:
    DoubleKms.keys.clear()
    yield
    DoubleKms.keys.clear()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the JVM was asked."""
    seen: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        "pyspark_iceberg_crypto.jvm._jvm.run",
        answering(lambda *args: not seen.append(args) and args[2] != "forbidden"),
    )
    monkeypatch.setattr(
        "pyspark_iceberg_crypto.jvm._jvm.catalog_properties", lambda *_: STORE.properties()
    )
    return seen


def test_check_tries_the_named_key(calls: list[tuple[Any, ...]]) -> None:
    STORE.check(SPARK, catalog="prod", key_id="not-listed")
    assert calls == [("check_key", "prod", "not-listed")]


def test_check_tries_each_enabled_key(calls: list[tuple[Any, ...]]) -> None:
    for name in ("a", "b", "c"):
        STORE.create_key(name)
    DoubleKms.keys["b"] = replace(DoubleKms.keys["b"], state="pending deletion")
    STORE.check(SPARK)
    assert calls == [("check_key", "lake", "a", True), ("check_key", "lake", "c", True)]


def test_check_passes_over_keys_that_the_catalog_does_not_allow(
    calls: list[tuple[Any, ...]],
) -> None:
    STORE.create_key("forbidden")
    with pytest.raises(
        AccessDeniedError, match="catalog 'lake' allows no enabled key of DoubleKms"
    ):
        STORE.check(SPARK)
    STORE.create_key("a")
    STORE.check(SPARK)
    assert calls[-2:] == [
        ("check_key", "lake", "forbidden", True),
        ("check_key", "lake", "a", True),
    ]


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({}, "has no encryption.kms-type, and this Vault has vault"),
        ({"encryption.kms-type": "aws"}, "has encryption.kms-type=aws, and this Vault has vault"),
        (
            {**VAULT.properties(), "encryption.kms.vault.address": "https://other"},
            "has encryption.kms.vault.address=https://other, and this Vault has https://v",
        ),
        (
            {k: v for k, v in VAULT.properties().items() if not k.endswith("namespace")},
            "has no encryption.kms.vault.namespace, and this Vault has team",
        ),
    ],
    ids=str,
)
def test_check_of_a_catalog_of_another_kms(
    monkeypatch: pytest.MonkeyPatch,
    calls: list[tuple[Any, ...]],
    properties: dict[str, str],
    says: str,
) -> None:
    """A trial of the catalog's own KMS would say nothing about this one."""
    monkeypatch.setattr("pyspark_iceberg_crypto.jvm._jvm.catalog_properties", lambda *_: properties)
    with pytest.raises(ConfigurationError, match="catalog 'lake' has ") as caught:
        VAULT.check(SPARK, key_id="k1")
    assert says in caught.value.message
    assert "configure_spark(..., catalog='lake', kms=...)" in caught.value.hint
    assert calls == []


def test_check_of_a_catalog_that_leaves_a_setting_to_its_default(
    monkeypatch: pytest.MonkeyPatch, calls: list[tuple[Any, ...]]
) -> None:
    properties = VAULT.properties()
    assert properties.pop("encryption.kms.vault.transit-mount") == "transit"
    monkeypatch.setattr("pyspark_iceberg_crypto.jvm._jvm.catalog_properties", lambda *_: properties)
    VAULT.check(SPARK, key_id="k1")
    assert len(calls) == 1


AZURE = AzureKeyVault("https://v.vault.azure.net")
AWS, GCP = "encryption.kms.aws", "encryption.kms.gcp"


@pytest.mark.parametrize(
    ("given", "more", "key"),
    [
        (
            Vault("https://v", token_env="T"),
            {"encryption.kms.vault.namespace": "team"},
            "namespace",
        ),
        (
            Vault("https://v", token_env="T"),
            {"encryption.kms.vault.allow-http": "true"},
            "allow-http",
        ),
        (AwsKms(), {f"{AWS}.region": "us-east-1"}, "region"),
        (AwsKms(), {"client.region": "us-east-1"}, "region"),
        (AwsKms(region="us-east-1"), {f"{AWS}.encryption-context.team": "a"}, "context.team"),
        (GcpKms(), {f"{GCP}.additional-authenticated-data": "key-id"}, "authenticated-data"),
        (AZURE, {"encryption.kms.azure.store-key-version": "true"}, "store-key-version"),
    ],
    ids=str,
)
def test_check_of_a_catalog_with_a_setting_more(
    monkeypatch: pytest.MonkeyPatch,
    calls: list[tuple[Any, ...]],
    given: Kms,
    more: dict[str, str],
    key: str,
) -> None:
    properties = {**given.properties(), **more}
    monkeypatch.setattr("pyspark_iceberg_crypto.jvm._jvm.catalog_properties", lambda *_: properties)
    (value,) = more.values()
    with pytest.raises(ConfigurationError, match=f"{key}={value}, and this {type(given).__name__}"):
        given.check(SPARK, key_id="k1")
    assert calls == []


@pytest.mark.parametrize(
    ("given", "properties"),
    [
        (AZURE, {"encryption.kms-type": " AZURE", "azure.keyvault.url": AZURE.vault_url}),
        (AZURE, {**AZURE.properties(), "encryption.kms.azure.store-key-version": "false"}),
        (AZURE, {**AZURE.properties(), "encryption.kms.azure.versions-to-try": "3"}),
        (AwsKms(region="r"), {"encryption.kms-type": "aws", "client.region": "r"}),
        (AwsKms(profile="p"), {"encryption.kms-type": "Aws", "encryption.kms.cache.ttl-ms": "0"}),
        (GcpKms(), {**GcpKms().properties(), f"{GCP}.additional-authenticated-data": "none"}),
        (VAULT, {**VAULT.properties(), "encryption.kms.vault.allow-http": "false"}),
        (VAULT, {**VAULT.properties(), "encryption.kms.vault.approle-mount": "approle"}),
    ],
    ids=str,
)
def test_check_of_a_catalog_with_the_same_settings_in_other_words(
    monkeypatch: pytest.MonkeyPatch,
    calls: list[tuple[Any, ...]],
    given: Kms,
    properties: dict[str, str],
) -> None:
    monkeypatch.setattr("pyspark_iceberg_crypto.jvm._jvm.catalog_properties", lambda *_: properties)
    given.check(SPARK, key_id="k1")
    assert len(calls) == 1


def test_check_of_a_kms_without_keys(calls: list[tuple[Any, ...]]) -> None:
    with pytest.raises(KeyNotFoundError, match="DoubleKms has no key to check"):
        STORE.check(SPARK)
    assert calls == []


def test_check_when_every_key_is_disabled(calls: list[tuple[Any, ...]]) -> None:
    DoubleKms.keys["a"] = replace(STORE.create_key("a"), state="disabled")
    with pytest.raises(KeyDisabledError, match="'a' is disabled"):
        STORE.check(SPARK)
    assert calls == []


def test_check_without_the_client_library_asks_for_a_key_id(
    monkeypatch: pytest.MonkeyPatch, calls: list[tuple[Any, ...]]
) -> None:
    monkeypatch.setattr(DoubleKms, "list_keys", lambda _: _extras.load("no_such.thing", "double"))
    with pytest.raises(ConfigurationError, match="which key of DoubleKms to check") as caught:
        STORE.check(SPARK)
    assert "'no_such.thing' is not installed" in caught.value.message
    assert "key_id='...'" in caught.value.hint
    assert "pip install 'pyspark-iceberg-crypto[double]'" in caught.value.hint
    STORE.check(SPARK, key_id="k1")
    assert len(calls) == 1


def test_load_gives_the_module() -> None:
    assert _extras.load("json.decoder", "x").JSONDecoder is json.JSONDecoder


def test_load_does_not_hide_what_a_library_itself_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "broken_library.py").write_text("import its_own_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="its_own_dependency"):
        _extras.load("broken_library", "double")


def test_importing_the_package_loads_no_client_library() -> None:
    libraries = ("hvac", "boto3", "google.cloud.kms", "azure.identity", "azure.keyvault.keys")
    program = f"import sys, pyspark_iceberg_crypto\nprint([name for name in {libraries!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_every_kms_type_has_its_class() -> None:
    assert all(issubclass(made, Kms) for made in kms.BY_TYPE.values())
    assert {made.__name__ for made in kms.BY_TYPE.values()} <= set(pyspark_iceberg_crypto.__all__)


def test_a_kms_must_have_all_its_methods() -> None:
    class Half(Kms):
        def properties(self) -> dict[str, str]:
            return {}

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


@pytest.mark.parametrize("kind", sorted(BY_TYPE))
def test_java_knows_every_property(kind: str) -> None:
    """Java refuses names that it does not know: its table has all that Python's classes set, and the same defaults."""
    table = Path("jvm/core/src/main/resources/io/icebergcrypto/kms/config/properties.tsv")
    with table.open() as file:
        defaults = {row[1]: row[2] for row in csv.reader(file, "excel-tab", quoting=csv.QUOTE_NONE)}
    for name, (field, about) in settings(BY_TYPE[kind]).items():
        if not about.local:
            suffix = ".NAME" if field.default_factory is dict else ""
            default = defaults[f"encryption.kms.{kind}.{name.replace('_', '-')}{suffix}"]
            known = default.strip("`") if default.startswith("`") else None
            assert (about.implied or as_text(field.default)) == known, name
