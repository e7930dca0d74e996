"""A KMS as its contract has it: its server, a JVM with its client, and its Python class."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import pyspark_iceberg_crypto
from harness.backends import KINDS, Backend
from harness.jvm import Client, Jvm
from harness.refused import refused
from pyspark_iceberg_crypto import IcebergCryptoError, Kms

KEY = b"0123456789abcdef"
QUICK = {
    "encryption.kms.retry.initial-delay-ms": "10",
    "encryption.kms.retry.max-delay-ms": "20",
    "encryption.kms.retry.max-attempts": "3",
    "encryption.kms.circuit-breaker.failures": "0",
}
EVERY = (*KINDS, "ministack", "ranger")


@dataclass
class Subject:
    """A KMS, two keys that only read-only tests use, and clients of it."""

    backend: Backend
    jvm: Jvm
    admin: Kms
    reader: Kms
    key: str = ""
    other: str = ""

    def client(self, *, raw: bool = True, **more: str) -> Client:
        return self.jvm.client(self.properties | more, raw=raw)

    @property
    def properties(self) -> dict[str, str]:
        return self.reader.properties() | QUICK

    @property
    def where(self) -> str:
        """How errors name this KMS."""
        fields = self.backend.fields
        if self.backend.proxy:
            return str(self.properties[f"encryption.kms.{self.prefix}"])
        return f"token '{fields['token_label']}'" if "token_label" in fields else fields["path"]

    @property
    def prefix(self) -> str:
        names = {"vault": "vault.address", "azure": "azure.vault-url", "hadoop": "hadoop.uri"}
        return names.get(self.backend.kind, f"{self.backend.kind}.endpoint")

    def new_key(self) -> str:
        return self.admin.create_key(f"{self.backend.key}-{uuid.uuid4().hex[:8]}").key_id

    def refused(
        self, kind: type[IcebergCryptoError], call: Callable[[], Any], key_id: str, *words: str
    ) -> None:
        """The call fails with this type of error, which names key and KMS, has a hint, and tells no secret."""
        hidden = [*self.backend.secrets, KEY.decode()]
        refused(kind, call, f"'{key_id}'", self.where, *words, secrets=hidden)


def make_subject(backend: Backend, jvm: Jvm) -> Subject:
    kms: type[Kms] = getattr(pyspark_iceberg_crypto, backend.kms)
    fields = dict(backend.fields)
    if "encryption_context" in fields:
        fields["encryption_context"] = {"lake": "tests"}  # without a table
    made = Subject(backend, jvm, kms(**{**fields, **backend.admin}), kms(**fields))
    made.key, made.other = made.new_key(), made.new_key()
    return made


def on(*kinds: str) -> pytest.MarkDecorator:
    """Some KMSs only."""
    return pytest.mark.parametrize("kms", kinds, indirect=True)
