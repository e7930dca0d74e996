"""The tables that turn vendors' errors into ours."""

import traceback
from importlib import import_module
from string import Formatter
from types import SimpleNamespace

import pytest
from google.api_core.exceptions import FailedPrecondition

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    IcebergCryptoError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
)
from pyspark_iceberg_crypto.kms._errors import ErrorTable, Rule
from pyspark_iceberg_crypto.kms.aws import _keys as aws_keys
from pyspark_iceberg_crypto.kms.aws._errors import ERRORS as AWS_ERRORS
from pyspark_iceberg_crypto.kms.azure import _errors as azure
from pyspark_iceberg_crypto.kms.gcp import _errors as gcp
from pyspark_iceberg_crypto.kms.gcp import _keys as gcp_keys
from pyspark_iceberg_crypto.kms.hadoop import _errors as hadoop
from pyspark_iceberg_crypto.kms.hadoop import _keys as hadoop_keys
from pyspark_iceberg_crypto.kms.pkcs11 import _keys as pkcs11_keys
from pyspark_iceberg_crypto.kms.pkcs11 import _tool as pkcs11
from pyspark_iceberg_crypto.kms.vault import _login, _vault

TABLES = {
    "aws": AWS_ERRORS,
    "keys of aws": aws_keys.WRAPPING,
    "azure": azure.ERRORS,
    "gcp": gcp.ERRORS,
    "a file of gcp's": gcp.FILE_ERRORS,
    "keys wrapped by gcp": gcp_keys.WRAPPING,
    "keys unwrapped by gcp": gcp_keys.UNWRAPPING,
    "hadoop": hadoop.ERRORS,
    "keys of hadoop": hadoop_keys.WRAPPING,
    "pkcs11": pkcs11.ERRORS,
    "keys of pkcs11": pkcs11_keys.ERRORS,
    "vault": _vault.ERRORS,
    "a login to vault": _login.ERRORS,
}
TABLE = ErrorTable(
    [
        Rule("gone", KeyNotFoundError, "make it in {place}", "{what}: {said} ({code})"),
        Rule("secret", LoginFailedError, "log in", "{what}: refused"),
        Rule("busy", KmsUnavailableError),
        Rule("OSError", KmsUnavailableError, "check the network"),
        Rule("json.decoder.JSONDecodeError", ConfigurationError, "check the address"),
    ],
    lambda error: (str(error).split(" "), f"it said {error}"),
)


def typed(error: Exception, **more: str) -> IcebergCryptoError:
    with pytest.raises(IcebergCryptoError) as raised, TABLE.typed("no key", place="here", **more):
        raise error
    return raised.value


@pytest.mark.parametrize("name", TABLES)
def test_no_code_stands_in_a_table_twice_and_every_exception_is_one(name: str) -> None:
    codes = [code for rule in TABLES[name].rules for code in rule.codes.split()]
    assert len(codes) == len(set(codes))
    for code in codes:
        module, _, kind = code.rpartition(".")
        if module or code.endswith("Error"):
            found = getattr(import_module(module or "builtins"), kind)
            assert issubclass(found, Exception)
            assert found.__module__ == (module or "builtins"), "found by this name"


NAMES = {
    "gcp": {"kms", "subject"},
    "keys of aws": {"operation", "context"},
    "keys wrapped by gcp": {"kms", "subject", "operation"},
    "keys unwrapped by gcp": {"kms", "subject", "operation"},
    "hadoop": {"user", "uri"},
    "keys of hadoop": {"kms", "user", "uri", "key", "operation"},
    "pkcs11": {"library"},
    "keys of pkcs11": {"library"},
    "vault": {"vault", "mount"},
    "a login to vault": {"mount"},
}


@pytest.mark.parametrize("name", TABLES)
def test_every_rule_has_a_hint_and_words_that_its_callers_give(name: str) -> None:
    known = {"what", "said", "code"} | NAMES.get(name, set())
    for rule in TABLES[name].rules:
        assert rule.hint or rule.kind is KmsUnavailableError, rule
        used = {field for _, field, *_ in Formatter().parse(rule.hint + rule.problem) if field}
        assert used <= known, rule


def test_the_first_code_with_a_rule_counts() -> None:
    error = typed(ValueError("unknown gone busy"))
    assert type(error) is KeyNotFoundError
    assert error.message == "no key: it said unknown gone busy (gone)"
    assert error.hint == "make it in here"
    assert isinstance(error.__cause__, ValueError)


def test_a_rule_for_a_class_counts_for_its_subclasses() -> None:
    assert typed(ConnectionResetError("x")).hint == "check the network"


def test_an_error_without_a_rule_passes() -> None:
    with pytest.raises(ZeroDivisionError), TABLE.typed("no key"):
        raise ZeroDivisionError("a defect of ours")


def test_an_error_of_ours_passes() -> None:
    with pytest.raises(ConfigurationError, match="^as it is"), TABLE.typed("no key"):
        raise ConfigurationError("as it is")


def test_a_message_that_may_hold_a_secret_is_in_no_traceback() -> None:
    error = typed(ValueError("secret token-4711"))
    assert "token-4711" not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("behind", [False, True])
def test_a_header_that_cannot_be_sent_is_in_no_traceback(behind: bool) -> None:
    error = ValueError("Invalid header value b'token-4711\\n'")
    if behind:
        outer = OSError("busy")
        outer.__cause__ = error
    found = typed(outer if behind else error)
    assert type(found) is LoginFailedError
    assert "token-4711" not in "".join(traceback.format_exception(found))


class OfAwsError(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.response = {"Error": {"Code": "KMSInvalidStateException", "Message": message}}


def of_google(message: str) -> Exception:
    status = {"error": {"status": "FAILED_PRECONDITION"}}
    return FailedPrecondition(message, response=SimpleNamespace(json=lambda: status))


@pytest.mark.parametrize(
    ("error", "tables", "kind"),
    [
        (OfAwsError("arn:... is pending deletion."), ("aws", "keys of aws"), KeyDisabledError),
        (OfAwsError("AWS KMS cannot communicate"), ("aws", "keys of aws"), IcebergCryptoError),
        (of_google("k/1 is not enabled"), ("gcp", "keys unwrapped by gcp"), KeyDisabledError),
        (of_google("EKM is unreachable"), ("gcp", "keys unwrapped by gcp"), IcebergCryptoError),
    ],
    ids=str,
)
def test_a_key_store_that_fails_is_no_disabled_key(
    error: Exception, tables: tuple[str, ...], kind: type[IcebergCryptoError]
) -> None:
    """As in Java: both KMSs answer both in the same way, and only the message tells."""
    for table in tables:
        with pytest.raises(kind) as raised, TABLES[table].typed("no", kms="KMS", subject="k"):
            raise error
        assert type(raised.value) is kind


def test_a_call_that_must_not_be_made_twice() -> None:
    once = "see describe_key first"
    assert typed(ValueError("busy")).hint == "try again later"
    assert typed(ValueError("busy"), once=once).hint == once
    assert typed(OSError("x"), once=once).hint == f"check the network; {once}"
    assert once not in typed(ValueError("gone"), once=once).hint
