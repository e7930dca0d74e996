"""What every KMS's Python class must do for anyone who sets keys up: one contract, seven KMSs, and Ranger's Hadoop KMS.

A KMS's own folder has what only that one does.
"""

import sys
import uuid

import pytest
from harness.backends import KINDS
from harness.refused import explained, refused
from harness.subject import Subject, on

from pyspark_iceberg_crypto import ConfigurationError, KeyNotFoundError, KmsUnavailableError


def test_made_described_listed(kms: Subject) -> None:
    key = kms.new_key()
    made = kms.admin.describe_key(key)
    assert (made.key_id, made.state) == (key, "enabled")
    assert key in {listed.key_id for listed in kms.admin.list_keys()}


@on(*KINDS, "ranger")
def test_rotated(kms: Subject) -> None:
    made = kms.admin.describe_key(kms.new_key())
    rotated = kms.admin.rotate_key(made.key_id)
    assert rotated == kms.admin.describe_key(made.key_id)
    assert rotated.version != made.version


def test_a_key_is_never_made_over_another(kms: Subject) -> None:
    name = f"{kms.backend.key}-{uuid.uuid4().hex[:8]}"
    made = kms.admin.describe_key(kms.admin.create_key(name).key_id)
    client = kms.client()
    blob = client.wrap(b"0123456789abcdef", made.key_id)
    before = len(kms.admin.list_keys())
    refused(ConfigurationError, lambda: kms.admin.create_key(name), name, "already")
    assert len(kms.admin.list_keys()) == before
    assert kms.admin.describe_key(made.key_id) == made
    assert client.unwrap(blob, made.key_id) == b"0123456789abcdef"


def test_a_key_that_is_missing(kms: Subject) -> None:
    missing = kms.key[:-8] + "00000000"
    for call in (kms.admin.describe_key, kms.admin.rotate_key):
        kms.refused(KeyNotFoundError, lambda ask=call: ask(missing), missing)


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_a_name_that_cannot_be(kms: Subject, name: str) -> None:
    refused(ConfigurationError, lambda: kms.admin.create_key(name), repr(name))


@pytest.mark.nightly
@on("vault", "aws", "gcp", "azure", "hadoop", "ranger")
def test_an_outage(kms: Subject) -> None:
    assert kms.backend.proxy is not None
    kms.backend.proxy.mode = "down"
    kms.refused(KmsUnavailableError, lambda: kms.admin.describe_key(kms.key), kms.key)


MODULES = {
    "vault": ["hvac"],
    "aws": ["boto3"],
    "gcp": ["google.cloud.kms_v1"],
    "azure": ["azure.keyvault.keys", "azure.identity"],
}


@on(*MODULES)
def test_without_the_clients_library(kms: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """The properties of a catalog do not need it, nor does the policy."""
    kind = kms.backend.kind
    for module in MODULES[kind]:
        with monkeypatch.context() as without:
            without.setitem(sys.modules, module, None)
            with pytest.raises(ConfigurationError) as raised:
                kms.admin.list_keys()
            explained(raised.value, [module, f"pyspark-iceberg-crypto[{kind}]"])
            assert kms.reader.properties()["encryption.kms-type"] == kind
            assert kind == "aws" or kms.reader.driver_policy([kms.key])


def test_no_secret_is_shown(kms: Subject) -> None:
    shown = repr(kms.admin) + repr(kms.reader) + str(kms.reader.properties())
    shown += kms.reader.driver_policy([kms.key])
    assert not [secret for secret in kms.backend.secrets if secret in shown]
