"""Keys wrapped and unwrapped by AWS KMS; in Java these are ``AwsKeys`` and ``AwsErrors``."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    KeyNotFoundError,
    KmsUnavailableError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms import _blob
from pyspark_iceberg_crypto.kms._client import MasterKeys, require_table
from pyspark_iceberg_crypto.kms._errors import Rule
from pyspark_iceberg_crypto.kms._extras import load
from pyspark_iceberg_crypto.kms._secrets import require_unwritable
from pyspark_iceberg_crypto.kms.aws._errors import ERRORS

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.kms.aws._aws import AwsKms

TABLE_UUID = "{table-uuid}"
_ALGORITHM = "SYMMETRIC_DEFAULT"
_SETTING = "encryption.kms.aws.encryption-context."


def _read(error: Any) -> tuple[Sequence[str], str]:
    """Read a validation's message, too: only it tells which argument was wrong."""
    codes, said = ERRORS.read(error)
    if "ValidationException" in codes:
        named = {"ciphertextBlob": "blob", "keyId": "key"}
        codes = [code for word, code in named.items() if word in said] + list(codes)
    return codes, said


WRAPPING = ERRORS.overruled(
    [
        Rule(
            "blob InvalidCiphertextException IncorrectKeyException",
            BadWrappedKeyError,
            "the wrapped key was changed, another key or KMS wrapped it, or it was wrapped with another encryption "
            "context (or none) than {context}, such as for another table's UUID",
        ),
        Rule(
            "key NotFoundException InvalidArnException",
            KeyNotFoundError,
            "check the name, the region and the account: a key of another account needs its ARN",
        ),
        Rule(
            "AccessDeniedException",
            AccessDeniedError,
            "allow this login kms:{operation} on the key, in an IAM policy and in the key's own policy; "
            "AwsKms(...).driver_policy([...]) prints what it needs",
        ),
        Rule(
            "InvalidKeyUsageException UnsupportedOperationException",
            NotSupportedError,
            "use a symmetric key for encryption (the default of create-key)",
        ),
        Rule(
            "KMSInternalException DependencyTimeoutException KeyUnavailableException LimitExceededException",
            KmsUnavailableError,
        ),
    ],
    _read,
)


class AwsKeys(MasterKeys):
    """The master keys of AWS KMS. A wrapped key is KMS's own ciphertext, as Iceberg's client has it."""

    def __init__(self, kms: AwsKms, call_seconds: float) -> None:
        self._kms = kms
        self._seconds = call_seconds
        self._lock = threading.Lock()
        self._client: Any = None

    def wrap(self, key: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.wrap`."""
        return self._call(
            "Encrypt",
            key_id,
            lambda client, given: client.encrypt(Plaintext=key, **given).get("CiphertextBlob"),
            table,
        )

    def unwrap(self, wrapped: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.unwrap`."""
        _blob.require_bare(wrapped, "aws", key_id, self._kms._name)
        return self._call(
            "Decrypt",
            key_id,
            lambda client, given: client.decrypt(CiphertextBlob=wrapped, **given).get("Plaintext"),
            table,
        )

    def close(self) -> None:
        """See `MasterKeys.close`."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _call(
        self,
        operation: str,
        key_id: str,
        ask: Callable[[Any, dict[str, Any]], bytes | None],
        table: str | None,
    ) -> bytes:
        context = {
            name: require_table(table, f"{_SETTING}{name}={TABLE_UUID}")
            if value == TABLE_UUID
            else value
            for name, value in self._kms.encryption_context.items()
        }
        _require_unwritable_files()
        given = {
            "KeyId": key_id,
            "EncryptionAlgorithm": _ALGORITHM,
            "EncryptionContext": context,
        }
        what = "wrap" if operation == "Encrypt" else "unwrap"
        with WRAPPING.typed(
            f"{self._kms._name} could not {what} with key '{key_id}'",
            operation=operation,
            context=str(dict(self._kms.encryption_context)),
        ):
            answer = ask(self._made(), given)
        if not answer:
            raise ConfigurationError(
                f"{self._kms._name} answered for key '{key_id}', but not as AWS KMS does",
                "check the endpoint and any proxy before it",
            )
        return answer

    def _made(self) -> Any:
        with self._lock:
            if self._client is None:
                config = load("botocore.config", self._kms.extra).Config(
                    retries={"total_max_attempts": 1},  # CachedKms tries again
                    connect_timeout=self._seconds / 3,
                    read_timeout=self._seconds,
                    user_agent_extra="iceberg-crypto",
                )
                self._client = self._kms._connect(config)
            return self._client


def _require_unwritable_files() -> None:
    """Refuse files that decide who logs in, and that others may write."""
    for name in ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        if os.environ.get(name):
            require_unwritable(Path(os.environ[name]), name)
    for name, place in (
        ("AWS_CONFIG_FILE", "~/.aws/config"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ):
        path = Path(os.environ.get(name) or place).expanduser()
        if path.is_file():  # not /dev/null, by which some name no file
            require_unwritable(path, f"{name} or boto3")
