"""GcpKms, the set-up helper, through Google's own client library against the double in doubles/gcp.py."""

import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import google.auth.credentials
import pytest
import requests
from doubles.faults import FaultProxy
from doubles.gcp import PROJECT, RING, GcpKmsDouble
from doubles.gcp_login import OWNER
from harness.jvm import Jvm

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms.gcp import GcpKms

DEK = b"0123456789abcdef"
DRIVER = "driver@test-project.iam.gserviceaccount.com"
KEY = f"{RING}/cryptoKeys/k1"


@pytest.fixture(autouse=True)
def only_this_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No request leaves this machine. Google's library asks where an account may work, beside what it is told to."""
    monkeypatch.setattr(
        google.auth.credentials.CredentialsWithRegionalAccessBoundary,
        "_is_regional_access_boundary_lookup_required",
        lambda credentials: False,
    )
    send, strangers = requests.adapters.HTTPAdapter.send, []

    def guarded(adapter: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if not request.url.startswith("http://127.0.0.1:"):
            strangers.append(request.url)
            raise requests.ConnectionError(request.url)
        return send(adapter, request, *args, **kwargs)

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", guarded)
    yield
    assert not strangers


@pytest.fixture
def kms(double: GcpKmsDouble, tmp_path: Path) -> GcpKms:
    return GcpKms(
        credentials_file=double.login.service_account(tmp_path / "account.json"),
        endpoint=double.url,
        project=PROJECT,
        location="europe-west3",
        key_ring="lake",
    )


def test_properties(kms: GcpKms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert GcpKms().properties() == {"encryption.kms-type": "gcp"}
    monkeypatch.chdir(tmp_path)
    given = replace(kms, credentials_file="account.json", additional_authenticated_data="key-id")
    assert given.properties() == {
        "encryption.kms-type": "gcp",
        "encryption.kms.gcp.credentials-file": str(tmp_path / "account.json"),
        "encryption.kms.gcp.endpoint": kms.endpoint,
        "encryption.kms.gcp.additional-authenticated-data": "key-id",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"additional_authenticated_data": "yes"},
        {"endpoint": "http://cloudkms.googleapis.com"},
        {"endpoint": "https://cloudkms.googleapis.com/v1"},
    ],
)
def test_bad_arguments(arguments: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        GcpKms(**arguments)


def test_create_describe_list_rotate(kms: GcpKms, double: GcpKmsDouble, jvm: Jvm) -> None:
    made = kms.create_key("k1")
    assert made == kms.describe_key(KEY) == kms.describe_key("k1")
    assert (made.key_id, made.state, made.version, made.versions) == (KEY, "enabled", "1", 1)
    assert made.algorithm == "GOOGLE_SYMMETRIC_ENCRYPTION"
    assert made.detail == {"protection_level": "SOFTWARE", "purpose": "ENCRYPT_DECRYPT"}
    assert re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d", made.created or "")

    client = jvm.client(kms.properties(), raw=True)
    old = client.wrap(DEK, KEY)
    rotated = kms.rotate_key(KEY)
    assert (rotated.version, rotated.versions, rotated.state) == ("2", 2, "enabled")
    assert double.version(KEY, 2).decrypt(client.wrap(DEK, KEY), b"") == DEK
    assert client.unwrap(old, KEY) == DEK

    hsm = kms.create_key(f"{RING}/cryptoKeys/hardware", protection_level="hsm")
    assert hsm.detail["protection_level"] == "HSM"
    double.add_key("signs", "ASYMMETRIC_SIGN")
    for name in ("k2", "k3", "k4"):
        kms.create_key(name)
    assert [key.key_id.rpartition("/")[2] for key in kms.list_keys()] == [
        "hardware",
        "k1",
        "k2",
        "k3",
        "k4",
    ], "all pages, and no key that cannot wrap"


def test_a_key_ring_is_made_only_when_asked_for(kms: GcpKms, double: GcpKmsDouble) -> None:
    key = KEY.replace("/lake/", "/sea/")
    with pytest.raises(ConfigurationError, match="has no key ring") as raised:
        kms.create_key(key)
    assert "create_key_ring=True" in raised.value.hint
    assert double.rings == {RING}
    assert kms.create_key(key, create_key_ring=True).key_id == key
    kms.create_key(f"{key}2", create_key_ring=True)
    assert double.rings == {RING, RING.replace("lake", "sea")}


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("DISABLED", "disabled"),
        ("DESTROY_SCHEDULED", "pending deletion"),
        ("DESTROYED", "destroyed"),
    ],
)
def test_states(kms: GcpKms, double: GcpKmsDouble, state: str, told: str) -> None:
    double.version(double.add_key("k1")).state = state
    assert kms.describe_key(KEY).state == told
    assert [key.state for key in kms.list_keys()] == [told]


def test_a_key_without_a_primary_version(kms: GcpKms, double: GcpKmsDouble) -> None:
    double.keys[double.add_key("k1")].primary = 0
    assert kms.describe_key(KEY).state == "no primary version"


def test_names(kms: GcpKms) -> None:
    for name in ("", "k 1", "k1/k2", RING, f"{KEY}/versions/1"):
        for method in (kms.create_key, kms.describe_key, kms.rotate_key):
            with pytest.raises(ConfigurationError, match="is not the name of a key"):
                method(name)
    with pytest.raises(ConfigurationError, match="is not the name of a key"):
        GcpKms(project=PROJECT).describe_key("k1")
    with pytest.raises(ConfigurationError, match="which keys to list"):
        GcpKms(project=PROJECT).list_keys()
    with pytest.raises(ConfigurationError, match="protection_level"):
        kms.create_key("k1", protection_level="external")


def test_missing_keys_and_rings(kms: GcpKms) -> None:
    for method in (kms.describe_key, kms.rotate_key):
        with pytest.raises(KeyNotFoundError) as raised:
            method(KEY)
        assert KEY in str(raised.value)
        assert "Google Cloud KMS at http://127.0.0.1:" in str(raised.value)
    with pytest.raises(ConfigurationError, match="has no key ring"):
        replace(kms, key_ring="sea").list_keys()


def test_keys_that_cannot_be_rotated(kms: GcpKms, double: GcpKmsDouble) -> None:
    signs = double.add_key("signs", "ASYMMETRIC_SIGN")
    with pytest.raises(NotSupportedError, match="ASYMMETRIC_SIGN"):
        kms.rotate_key(signs)
    assert len(double.keys[signs].versions) == 1


def test_a_version_that_is_disabled_meanwhile(kms: GcpKms, double: GcpKmsDouble) -> None:
    double.add_key("k1")

    def disable(answer: dict[str, str]) -> None:
        if answer.get("name", "").endswith("/cryptoKeyVersions/2"):
            double.version(KEY, 2).state = "DISABLED"

    double.change_answer = disable
    with pytest.raises(KeyDisabledError, match="current state is: DISABLED"):
        kms.rotate_key(KEY)
    assert double.keys[KEY].primary == 1


def test_a_hardware_key_s_version_takes_its_time(
    kms: GcpKms, double: GcpKmsDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    double.add_key("k1")
    polls = []

    def generate(answer: dict[str, str]) -> None:
        if answer.get("name", "").endswith("/cryptoKeyVersions/2"):
            polls.append(answer["state"])
            if len(polls) < 3:
                answer["state"] = "PENDING_GENERATION"

    double.change_answer = generate
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    assert kms.rotate_key(KEY).version == "2"
    assert len(polls) >= 3


def test_permissions(kms: GcpKms, double: GcpKmsDouble) -> None:
    double.add_key("k1")
    double.granted[OWNER] = set()
    for method, permission in (
        (lambda: kms.create_key("k2"), "cryptoKeys.create"),
        (kms.list_keys, "cryptoKeys.list"),
        (lambda: kms.describe_key(KEY), "cryptoKeys.get"),
    ):
        with pytest.raises(AccessDeniedError, match=f"cloudkms.{permission}'") as raised:
            method()
        assert not isinstance(raised.value, LoginFailedError)


def test_the_driver_s_policy_is_enough_and_not_more(
    kms: GcpKms, double: GcpKmsDouble, jvm: Jvm, tmp_path: Path
) -> None:
    other = "projects/example.com:other/locations/global/keyRings/r/cryptoKeys/k9"
    double.add_key("k1")
    policy = kms.driver_policy(["k1", other])
    (permissions,) = set(re.findall(r"--permissions=(\S+)", policy))
    assert policy.startswith("# ")
    assert policy.count("gcloud iam roles create") == 2, "a role belongs to one project"
    assert (
        "gcloud kms keys add-iam-policy-binding k1 --project=test-project --location=europe-west3"
        " --keyring=lake" in policy
    )
    assert "projects/example.com:other/roles/" in policy

    double.granted[DRIVER] = set(permissions.split(","))
    file = double.login.service_account(tmp_path / "driver.json", DRIVER)
    driver = replace(kms, credentials_file=file)
    client = jvm.client(driver.properties(), raw=True)
    assert client.unwrap(client.wrap(DEK, KEY), KEY) == DEK
    for method in (driver.list_keys, lambda: driver.rotate_key(KEY)):
        with pytest.raises(AccessDeniedError):
            method()


def test_logins(
    kms: GcpKms, double: GcpKmsDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double.add_key("k1")
    double.login.delete_key()
    with pytest.raises(LoginFailedError) as raised:
        kms.describe_key(KEY)
    assert "PRIVATE KEY" not in str(raised.value)
    external = double.login.external_account(tmp_path / "external.json", double.url)
    assert replace(kms, credentials_file=external).describe_key(KEY).state == "enabled"
    external.with_suffix(".subject").write_text("only-for-tests-wrong")
    with pytest.raises(LoginFailedError, match="The subject token is not valid") as raised:
        replace(kms, credentials_file=external).describe_key(KEY)
    assert "only-for-tests" not in str(raised.value)
    bad = tmp_path / "bad.json"
    for content in ("{}", "no JSON, and only-for-tests"):
        bad.write_text(content)
        with pytest.raises(ConfigurationError, match="has no credentials") as refused:
            replace(kms, credentials_file=bad).describe_key(KEY)
        assert "only-for-tests" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="has no credentials"):
        replace(kms, credentials_file=tmp_path / "missing.json").describe_key(KEY)
    for name, value in (
        ("CLOUDSDK_CONFIG", str(tmp_path / "gcloud")),
        ("NO_GCE_CHECK", "true"),
        ("GOOGLE_APPLICATION_CREDENTIALS", ""),
    ):
        monkeypatch.setenv(name, value)
    with pytest.raises(LoginFailedError, match="no application default credentials"):
        replace(kms, credentials_file=None).describe_key(KEY)


def test_tokens_that_no_header_holds(kms: GcpKms, double: GcpKmsDouble, tmp_path: Path) -> None:
    """requests' error shows them."""
    double.login.after = "\n"
    external = double.login.external_account(tmp_path / "external.json", double.url)
    with pytest.raises(LoginFailedError, match="is not a valid header value") as raised:
        replace(kms, credentials_file=external).describe_key(KEY)
    assert double.login.tokens
    shown = "".join(traceback.format_exception(raised.value))
    assert not [token for token in double.login.tokens if token in shown]


@pytest.mark.parametrize(
    "fault",
    [
        "down",
        "reset",
        ("status", 429, {}, '{"error": {"status": "RESOURCE_EXHAUSTED"}}'),
        ("status", 503, {}, "<html>busy</html>"),
    ],
)
def test_faults(
    kms: GcpKms, double: GcpKmsDouble, faults: Callable[..., FaultProxy], fault: object
) -> None:
    double.add_key("k1")
    proxy = faults(double.port)
    proxy.mode = fault  # type: ignore[assignment]
    with pytest.raises(KmsUnavailableError) as raised:
        replace(kms, endpoint=proxy.url).describe_key(KEY)
    assert KEY in str(raised.value)
