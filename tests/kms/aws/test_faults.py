"""AWS KMS on a bad day: outages, overload, refused logins, a wrong clock. In front of moto stands the fault proxy.

What neither moto nor ministack answers (permissions, logins, throttling, skew) the proxy answers, in the JSON
of the real service (protocol: JSON 1.1; codes: KMS API reference and its common errors). Words are those that its users
have on record (CloudTrail, the AWS CLI, AWS's Encryption SDKs' tests); the client goes by the codes, but for
ValidationException, where only the words tell which value was wrong.
"""

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest
from doubles.faults import FaultProxy, Status, reset
from harness.jvm import ENVIRONMENT, Client, Jvm
from harness.tls import make_authority
from servers.aws import REGION, AwsServer

from pyspark_iceberg_crypto import errors

KEY = bytes(range(16))
SECRETS = (ENVIRONMENT["AWS_SECRET_ACCESS_KEY"], "session-token-31415926", KEY.hex())


def answer(code: str, message: str = "", status: int = 400, **headers: str) -> Status:
    """An error as AWS KMS sends it."""
    sent = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-RequestId": "6f1c-req"}
    return ("status", status, sent | headers, json.dumps({"__type": code, "message": message}))


class Bench:
    """A key on moto, the proxy before it, and clients on the proxy."""

    def __init__(self, jvm: Jvm, moto: AwsServer, proxy: FaultProxy) -> None:
        self.jvm = jvm
        self.proxy = proxy
        self.key = moto.create_key()
        self.raw = self.client(raw=True)
        self.blob = self.raw.wrap(KEY, self.key)
        proxy.forget()

    def client(self, raw: bool = False, **settings: str) -> Client:
        properties = {
            "encryption.kms-type": "aws",
            "encryption.kms.aws.region": REGION,
            "encryption.kms.aws.endpoint": self.proxy.url,
            "encryption.kms.retry.initial-delay-ms": "10",
            "encryption.kms.retry.max-delay-ms": "20",
        }
        named = {f"encryption.kms.{name.replace('_', '-')}": v for name, v in settings.items()}
        return self.jvm.client(properties | named, raw=raw)

    def fails(
        self, kind: type[errors.IcebergCryptoError], client: Client | None = None
    ) -> errors.IcebergCryptoError:
        """An unwrap fails with just this type, names key and KMS, advises, and tells no secret."""
        with pytest.raises(kind) as caught:
            (client or self.raw).unwrap(self.blob, self.key)
        error = caught.value
        assert type(error) is kind
        assert self.key in error.message
        assert "AWS KMS at http://127.0.0.1:" in error.message
        assert error.hint
        trace = f"{error} {error.__cause__}"  # Java's stack trace, with the causes
        assert not [secret for secret in SECRETS if secret in trace]
        return error


@pytest.fixture
def bench(jvm: Jvm, moto: AwsServer, faults: Callable[..., FaultProxy]) -> Bench:
    return Bench(jvm, moto, faults(moto.port))


def test_host_that_is_not(bench: Bench) -> None:
    client = bench.client(raw=True, **{"aws.endpoint": "https://kms.invalid:1"})
    with pytest.raises(errors.KmsUnavailableError, match=r"https://kms.invalid:1.*UnknownHost"):
        client.wrap(KEY, bench.key)


OVERLOAD = [
    answer("ThrottlingException", "You have exceeded the rate at which you may call KMS."),
    answer("ThrottlingException", "Rate exceeded", 429),
    answer("LimitExceededException", "limit"),
    answer("KMSInternalException", "internal", 500),
    answer("DependencyTimeoutException", "timed out", 503),
    answer("KeyUnavailableException", "not available", 500),
    ("status", 502, {"Content-Type": "text/html"}, "<html>Bad Gateway</html>"),
    ("status", 503, {}, ""),
]


@pytest.mark.parametrize("overload", OVERLOAD, ids=lambda fault: f"{fault[1]} {fault[3][:32]}")
def test_overload_passes(bench: Bench, overload: Status) -> None:
    bench.proxy.mode = overload
    bench.fails(errors.KmsUnavailableError)
    assert len(bench.proxy.requests) == 1
    bench.proxy.mode = "pass"
    bench.proxy.next = [overload, overload]
    client = bench.client()
    assert client.unwrap(bench.blob, bench.key) == KEY
    assert client.metrics()["retries"] == 2
    assert len(bench.proxy.requests) == 4


NOT_ALLOWED = (
    "User: arn:aws:sts::123456789012:assumed-role/spark/i-0 is not authorized to perform: kms:Decrypt on "
    "resource: arn:aws:kms:us-east-1:123456789012:key/0 because no identity-based policy allows it"
)
REFUSED: dict[str, tuple[type[errors.IcebergCryptoError], str, str]] = {
    "NotFoundException": (errors.KeyNotFoundError, "Key 'arn:...' does not exist", "region"),
    "InvalidArnException": (errors.KeyNotFoundError, "Invalid Arn", "region"),
    "DisabledException": (errors.KeyDisabledError, "arn:... is disabled.", "enable-key"),
    "KMSInvalidStateException": (errors.KeyDisabledError, "pending import.", "describe-key"),
    "AccessDeniedException": (errors.AccessDeniedError, NOT_ALLOWED, "kms:Decrypt on the key"),
    "UnrecognizedClientException": (
        errors.LoginFailedError,
        "The security token included in the request is invalid.",
        "AWS_ACCESS_KEY_ID",
    ),
    "ExpiredTokenException": (
        errors.LoginFailedError,
        "The security token included in the request is expired",
        "Get a new session token",
    ),
    "IncorrectKeyException": (
        errors.BadWrappedKeyError,
        "The key ID in the request does not identify a CMK that can perform this operation.",
        "encryption.key-id",
    ),
    "InvalidCiphertextException": (errors.BadWrappedKeyError, "", "encryption context"),
    "InvalidKeyUsageException": (
        errors.NotSupportedError,
        "arn:... key usage is SIGN_VERIFY which is not valid for Decrypt.",
        "symmetric",
    ),
    "ValidationException": (
        errors.BadWrappedKeyError,
        "1 validation error detected: Value at 'ciphertextBlob' failed to satisfy constraint: Member "
        "must have length less than or equal to 6144",
        "wrapped key was changed",
    ),
    "SerializationException": (errors.IcebergCryptoError, "", "API reference"),
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals_are_final(bench: Bench, code: str) -> None:
    kind, message, hint = REFUSED[code]
    bench.proxy.mode = answer(code, message)
    error = bench.fails(kind, bench.client())
    assert code in error.message
    assert hint in error.hint
    assert len(bench.proxy.requests) == 1


def test_key_id_that_cannot_be_one(bench: Bench) -> None:
    message = (
        "1 validation error detected: Value at 'keyId' failed to satisfy constraint: Member must have "
        "length less than or equal to 2048"
    )
    bench.proxy.mode = answer("ValidationException", message)
    bench.fails(errors.KeyNotFoundError)


def test_permission_and_login_are_told_apart(bench: Bench) -> None:
    bench.proxy.mode = answer("AccessDeniedException", NOT_ALLOWED)
    assert "is not authorized to perform" in bench.fails(errors.AccessDeniedError).message
    bench.proxy.mode = answer("ExpiredTokenException", "expired")
    assert "login refused" in bench.fails(errors.LoginFailedError).message


def test_echo_of_a_signed_request_is_not_told(bench: Bench) -> None:
    """AWS repeats the headers it was sent, a session token among them, when a signature is wrong."""
    echo = (
        "The request signature we calculated does not match the signature you provided. Check your AWS "
        "Secret Access Key and signing method. Consult the service documentation for details.\n\nThe Canonical "
        f"String for this request should have been\n'POST\n/\n\nx-amz-security-token:{SECRETS[1]}\n'"
    )
    bench.proxy.mode = answer("InvalidSignatureException", echo)
    assert "InvalidSignatureException" in bench.fails(errors.LoginFailedError).message
    assert SECRETS[1] not in bench.jvm.log.read_text()


def skewed(offset: timedelta) -> Status:
    """What AWS answers to a host whose clock is off by that much."""
    now = datetime.now(timezone.utc) + offset
    message = (
        f"Signature expired: 20260101T000000Z is now earlier than {now:%Y%m%dT%H%M%SZ} "
        f"({now + timedelta(minutes=5):%Y%m%dT%H%M%SZ} - 5 min.)"
    )
    return answer("InvalidSignatureException", message, Date=format_datetime(now, usegmt=True))


def test_wrong_clock_is_made_up_for(bench: Bench) -> None:
    """The SDK takes the time from AWS's answer: one more request, and later ones are signed well at once."""
    bench.proxy.next = [skewed(timedelta(hours=2))]
    client = bench.client()
    assert client.unwrap(bench.blob, bench.key) == KEY
    before, after = (
        datetime.strptime(seen["x-amz-date"], "%Y%m%dT%H%M%SZ") for seen in bench.proxy.headers
    )
    assert timedelta(minutes=115) < after - before < timedelta(minutes=125)
    assert client.metrics()["unwrap_calls"] == 1
    bench.proxy.forget()
    client.wrap(KEY, bench.key)
    assert len(bench.proxy.requests) == 1


@pytest.mark.parametrize(
    "fault", [skewed(timedelta(hours=2)), answer("RequestExpired", "Request has expired.")]
)
def test_wrong_clock_for_good(bench: Bench, fault: Status) -> None:
    bench.proxy.mode = fault
    error = bench.fails(errors.LoginFailedError, bench.client())
    assert "clock" in error.hint
    assert "differ too much" in error.message
    assert len(bench.proxy.requests) <= 2


@pytest.mark.parametrize("by_reset", [False, True])
def test_connection_that_ends_in_the_tls_handshake(bench: Bench, by_reset: bool) -> None:
    """As when a load balancer restarts: no certificate was seen, so it is tried again."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            with suppress(OSError):  # the listener is closed
                while True:
                    connection, _ = listener.accept()
                    connection.recv(4096)
                    if by_reset:
                        reset(connection)
                    connection.close()

        threading.Thread(target=refuse, daemon=True).start()
        endpoint = f"https://127.0.0.1:{listener.getsockname()[1]}"
        client = bench.client(**{"aws.endpoint": endpoint, "retry.max_attempts": "2"})
        with pytest.raises(errors.KmsUnavailableError, match="cannot be reached") as caught:
            client.wrap(KEY, bench.key)
        listener.shutdown(socket.SHUT_RDWR)
    assert endpoint in caught.value.message
    assert client.metrics()["retries"] == 1


def test_untrusted_certificate(
    bench: Bench, moto: AwsServer, faults: Callable[..., FaultProxy], tmp_path: Path
) -> None:
    proxy = faults(moto.port, tls=make_authority(tmp_path).server)
    client = bench.client(raw=True, **{"aws.endpoint": proxy.url})
    with pytest.raises(errors.ConfigurationError, match="certificate is not trusted") as caught:
        client.wrap(KEY, bench.key)
    assert "trust store" in caught.value.hint


def test_something_else_answers(bench: Bench) -> None:
    """A portal, or a wrong endpoint."""
    bench.proxy.mode = ("status", 200, {}, "<html>Please log in</html>")
    assert "did not come from AWS KMS" in bench.fails(errors.KmsUnavailableError).message
    for body in ("{}", ""):
        bench.proxy.mode = ("status", 200, {}, body)
        assert "not as AWS KMS does" in bench.fails(errors.ConfigurationError).message


def test_requests_say_which_application_asks(bench: Bench) -> None:
    """CloudTrail keeps the user agent of each call."""
    client = bench.client(application_id="app-20261122.0001_7")
    client.wrap(KEY, bench.key)
    bench.raw.wrap(KEY, bench.key)
    known, unknown = (headers["user-agent"] for headers in bench.proxy.headers)
    assert "iceberg-crypto/app-20261122.0001_7" in known
    assert "iceberg-crypto/unknown" in unknown
