"""The Google Cloud KMS client: logins of every kind, their faults and the network's, and that no secret travels."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from doubles.faults import FaultProxy
from doubles.gcp import GcpKmsDouble
from doubles.gcp_login import OWNER, REFRESH_TOKEN, SUBJECT_TOKEN
from harness.jvm import Jvm, start_jvm
from harness.refused import problem_of
from harness.tls import TestAuthority, make_authority

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    KmsUnavailableError,
    LoginFailedError,
)

DEK = b"0123456789abcdef"
ENDPOINT = "encryption.kms.gcp.endpoint"
FILE = "encryption.kms.gcp.credentials-file"
TIMEOUT = "encryption.kms.call-timeout-ms"
Faults = Callable[..., FaultProxy]

problem = problem_of(
    "Google Cloud KMS at http://127.0.0.1:", secrets=("only-for-tests", "PRIVATE KEY")
)


def test_the_login_asks_for_cloud_kms_and_no_more(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, key: str
) -> None:
    jvm.client(properties, raw=True).wrap(DEK, key)
    (token,) = double.login.tokens.values()
    assert (token.account, token.scopes) == (OWNER, {"https://www.googleapis.com/auth/cloudkms"})


def test_tls(
    jvm: Jvm,
    properties: dict[str, str],
    double: GcpKmsDouble,
    authority: TestAuthority,
    faults: Faults,
    key: str,
    tmp_path: Path,
) -> None:
    url = faults(double.port, authority.server).url
    client = jvm.client({**properties, ENDPOINT: url}, raw=True)
    assert client.unwrap(client.wrap(DEK, key), key) == DEK
    assert client.text() == f"Google Cloud KMS at {url}"
    stranger = faults(double.port, make_authority(tmp_path).server).url
    with pytest.raises(ConfigurationError, match="TLS certificate is not trusted"):
        jvm.client({**properties, ENDPOINT: stranger}).wrap(DEK, key)
    file = double.login.service_account(tmp_path / "a.json", token_uri=f"{stranger}/token")
    with pytest.raises(ConfigurationError, match="TLS certificate is not trusted") as raised:
        jvm.client({**properties, FILE: str(file)}).wrap(DEK, key)
    problem(raised, key, "token_uri", str(file))


def test_authorized_user(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, key: str, tmp_path: Path
) -> None:
    file = double.login.authorized_user(tmp_path / "user.json")
    client = jvm.client({**properties, FILE: str(file)}, raw=True)
    assert client.unwrap(client.wrap(DEK, key), key) == DEK
    file.write_text(file.read_text().replace(REFRESH_TOKEN, "only-for-tests-revoked"))
    with pytest.raises(LoginFailedError) as raised:
        jvm.client({**properties, FILE: str(file)}, raw=True).wrap(DEK, key)
    problem(raised, key, "Token has been expired or revoked", "log in again", str(file))


def test_external_account(
    jvm: Jvm,
    properties: dict[str, str],
    double: GcpKmsDouble,
    authority: TestAuthority,
    faults: Faults,
    key: str,
    tmp_path: Path,
) -> None:
    """Workload identity federation: the file holds no secret and may be readable by all."""
    url = faults(double.port, authority.server).url
    for impersonate in ("", OWNER):
        file = double.login.external_account(tmp_path / "external.json", url, impersonate)
        client = jvm.client({**properties, FILE: str(file)}, raw=True)
        assert client.unwrap(client.wrap(DEK, key), key) == DEK
    subject = file.with_suffix(".subject")
    for changed in (file, subject):  # who may write it chooses who logs in, or where
        changed.chmod(0o666)
        with pytest.raises(ConfigurationError, match="may be changed by others") as open_to_all:
            jvm.client({**properties, FILE: str(file)}, raw=True).wrap(DEK, key)
        assert f"chmod go-w {changed}" in open_to_all.value.hint
        changed.chmod(0o644)
    client.wrap(DEK, key)
    subject.chmod(0o646)
    with pytest.raises(ConfigurationError, match="may be changed by others"):
        client.wrap(DEK, key)
    subject.chmod(0o644)
    subject.write_text("only-for-tests-wrong")
    with pytest.raises(LoginFailedError) as raised:
        jvm.client({**properties, FILE: str(file)}, raw=True).wrap(DEK, key)
    problem(raised, key, "The subject token is not valid", str(file))
    subject.write_text(SUBJECT_TOKEN)


def test_a_line_break_after_a_token(
    jvm: Jvm,
    properties: dict[str, str],
    double: GcpKmsDouble,
    authority: TestAuthority,
    faults: Faults,
    key: str,
    tmp_path: Path,
) -> None:
    """An HTTP client would quote the whole token in its error: ours, or Google's when it impersonates."""
    double.login.after = "\n"
    client = jvm.client(properties)
    with pytest.raises(ConfigurationError, match="Authorization has a character") as raised:
        client.wrap(DEK, key)
    problem(raised, "is a line break")
    url = faults(double.port, authority.server).url
    file = double.login.external_account(tmp_path / "external.json", url, OWNER)
    with pytest.raises(LoginFailedError) as refused:
        jvm.client({**properties, FILE: str(file)}).wrap(DEK, key)
    problem(refused, key, "header")
    for error in (raised.value, refused.value):
        assert "only-for-tests" not in f"{error} {error.__cause__}"
    assert "only-for-tests" not in jvm.log.read_text()
    double.login.after = ""
    assert client.wrap(DEK, key), "the bad one is not kept"


def test_application_default_credentials(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, key: str, gcloud: Path
) -> None:
    del properties[FILE]
    client = jvm.client(properties, raw=True)
    with pytest.raises(LoginFailedError, match="no application default credentials") as raised:
        client.wrap(DEK, key)
    assert "gcloud auth application-default login" in raised.value.hint
    assert FILE in raised.value.hint
    double.login.authorized_user(gcloud / "application_default_credentials.json")
    assert client.unwrap(client.wrap(DEK, key), key) == DEK, "found when they are there"
    double.login.revoke()
    assert client.unwrap(client.wrap(DEK, key), key) == DEK, "renewed"
    double.login.service_account(gcloud / "application_default_credentials.json")
    before = set(double.login.tokens)
    assert client.wrap(DEK, key)
    (new,) = set(double.login.tokens) - before
    assert double.login.tokens[new].account == OWNER, "replaced"
    (gcloud / "application_default_credentials.json").chmod(0o620)
    with pytest.raises(ConfigurationError, match="may be changed by others"):
        jvm.client(properties, raw=True).wrap(DEK, key)
    (gcloud / "application_default_credentials.json").unlink()


def test_a_machine_s_service_account(
    properties: dict[str, str], double: GcpKmsDouble, key: str, tmp_path: Path
) -> None:
    """On Google's machines, GKE and Dataproc the metadata server gives tokens."""
    del properties[FILE]
    environment = {
        "CLOUDSDK_CONFIG": str(tmp_path),
        "GCE_METADATA_HOST": f"127.0.0.1:{double.port}",
        "GOOGLE_APPLICATION_CREDENTIALS": "",
        "NO_GCE_CHECK": "",
    }
    machine = start_jvm(tmp_path / "log", environment)
    try:
        client = machine.client(properties, raw=True)
        assert client.unwrap(client.wrap(DEK, key), key) == DEK
        double.login.revoke()
        client.wrap(DEK, key)
        assert double.login.logins == 2

        file = tmp_path / "application_default_credentials.json"
        double.login.authorized_user(file)
        assert client.wrap(DEK, key), "a file comes before the machine"
        file.unlink()
        double.login.revoke()
        before = set(double.login.tokens)
        with pytest.raises(ConfigurationError, match="does not exist"):
            client.wrap(DEK, key)
        assert set(double.login.tokens) == before, "the machine is no stand-in for a missing file"
    finally:
        machine.stop()


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (None, 0, "does not exist"),
        ("", 0o600, 'has no "type"'),
        ("only-for-tests", 0o600, 'has no "type"'),
        ('{"type": only-for-tests', 0o600, "it is not JSON"),
        ('{"private_key": "only-for-tests"}', 0o600, 'has no "type"'),
        ('{"type": "unheard_of"}', 0o600, "has no credentials"),
        ('{"type": "service_account"}', 0o600, "has no credentials"),
        ('{"type": "service_account", "private_key": "only-for-tests"}', 0o600, "has no cred"),
        ('{"type": "service_account", "private_key": "x"}', 0o640, "is open to others"),
        ('{"type": "authorized_user", "refresh_token": "x"}', 0o604, "is open to others"),
        (
            '{"type": "impersonated_service_account", "source_credentials": {"refresh_token": "x"}}',
            0o644,
            "is open to others",
        ),
    ],
)
def test_bad_credentials_files(
    jvm: Jvm,
    properties: dict[str, str],
    key: str,
    tmp_path: Path,
    content: str | None,
    mode: int,
    says: str,
) -> None:
    file = tmp_path / "bad.json"
    if content is not None:
        file.write_text(content)
        file.chmod(mode)
    client = jvm.client({**properties, FILE: str(file)}, raw=True)
    with pytest.raises(ConfigurationError, match=says) as raised:
        client.wrap(DEK, key)
    assert str(file) in str(raised.value)
    assert FILE in str(raised.value)
    assert raised.value.hint
    assert "only-for-tests" not in str(raised.value)


def test_a_service_account_s_broken_private_key_is_not_shown(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, key: str, tmp_path: Path
) -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nonly-for-tests\n-----END PRIVATE KEY-----\n"
    file = double.login.service_account(tmp_path / "broken.json", private_key=pem)
    with pytest.raises(ConfigurationError, match="has no credentials") as raised:
        jvm.client({**properties, FILE: str(file)}, raw=True).wrap(DEK, key)
    assert "only-for-tests" not in str(raised.value)
    assert "only-for-tests" not in jvm.log.read_text()


def test_a_revoked_token_is_renewed_once(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, key: str
) -> None:
    client = jvm.client(properties, raw=True)
    blob = client.wrap(DEK, key)
    double.login.revoke()
    assert client.unwrap(blob, key) == DEK
    assert double.login.logins == 2


def test_an_expired_token_is_renewed(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, key: str
) -> None:
    double.login.lifetime = 1
    client = jvm.client(properties, raw=True)
    blob = client.wrap(DEK, key)
    time.sleep(1.1)
    assert client.unwrap(blob, key) == DEK
    assert double.login.logins == 2


def test_a_login_that_is_never_accepted(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, faults: Faults, key: str
) -> None:
    proxy = faults(double.port)
    error = {
        "code": 401,
        "message": "Request had invalid credentials.",
        "status": "UNAUTHENTICATED",
    }
    proxy.mode = ("status", 401, {}, json.dumps({"error": error}))
    client = jvm.client({**properties, ENDPOINT: proxy.url})
    with pytest.raises(LoginFailedError) as raised:
        client.wrap(DEK, key)
    problem(raised, key, "refuses the login", "Log in again")
    assert len(proxy.requests) == 2, "one renewal, and no retry"


def test_a_deleted_account_key_and_its_replacement(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, key: str
) -> None:
    client = jvm.client(properties, raw=True)
    blob = client.wrap(DEK, key)
    double.login.delete_key()
    double.login.revoke()
    for _ in range(2):
        with pytest.raises(LoginFailedError) as raised:
            client.unwrap(blob, key)
        problem(raised, key, "Invalid JWT Signature", "new credentials file", properties[FILE])
    double.login.service_account(Path(properties[FILE]))
    assert client.unwrap(blob, key) == DEK, "the file is read again"


def test_a_good_token_is_used_while_the_login_is_out_of_order(
    jvm: Jvm,
    properties: dict[str, str],
    double: GcpKmsDouble,
    faults: Faults,
    key: str,
    tmp_path: Path,
) -> None:
    """It ends within three minutes, so Google's library would not use it any more."""
    double.login.lifetime = 120
    proxy = faults(double.port)
    file = double.login.service_account(tmp_path / "a.json", token_uri=f"{proxy.url}/token")
    client = jvm.client({**properties, FILE: str(file)})
    client.wrap(DEK, key)
    proxy.mode = ("status", 503, {}, "<html>busy</html>")
    proxy.forget()
    for _ in range(3):
        assert client.wrap(DEK, key)
    assert len(proxy.requests) <= 1, "a busy login is not asked each time"
    assert client.metrics()["errors"] == 0

    other = "other@test-project.iam.gserviceaccount.com"
    double.login.service_account(file, other, token_uri=f"{proxy.url}/token")
    proxy.forget()
    for _ in range(3):
        assert client.wrap(DEK, key)
    assert len(proxy.requests) == 1, "the login of a replaced file is asked, at once and once"
    proxy.mode = "pass"
    double.login.after = "\n"
    double.login.service_account(file, "bad@x.test", token_uri=f"{proxy.url}/token")
    assert client.wrap(DEK, key), "a token that is none does not take the place of one"
    file.write_text("{")
    assert client.wrap(DEK, key), "half written"
    file.unlink()
    assert client.wrap(DEK, key), "gone for a moment"
    assert client.metrics()["errors"] == 0

    double.login.after = ""
    double.login.service_account(file, other, token_uri=f"{proxy.url}/token")
    assert client.wrap(DEK, key), "the login of the file that is there now"
    assert list(double.login.tokens.values())[-1].account == other
    file.unlink()
    double.login.revoke()
    with pytest.raises(ConfigurationError, match="does not exist"):
        client.wrap(DEK, key)


@pytest.mark.parametrize("hours", [-2, 2])
def test_clock_skew(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, key: str, hours: int
) -> None:
    double.login.clock_skew = hours * 3600
    with pytest.raises(LoginFailedError) as raised:
        jvm.client(properties).wrap(DEK, key)
    problem(raised, key, "iat and exp", "clock", properties[FILE])
    assert double.login.logins == 1, "a refusal is not tried again"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("down", "cannot be reached"),
        ("hang", "did not finish within 700 ms"),
        ("reset", "Cloud KMS"),
        (("status", 503, {}, "<html>busy</html>"), "answers HTTP 503"),
        (("status", 429, {}, "{}"), "answers HTTP 429"),
    ],
)
def test_faults_of_the_login_server(
    jvm: Jvm,
    properties: dict[str, str],
    double: GcpKmsDouble,
    faults: Faults,
    key: str,
    tmp_path: Path,
    fault: object,
    says: str,
) -> None:
    proxy = faults(double.port)
    proxy.mode = fault  # type: ignore[assignment]
    file = double.login.service_account(tmp_path / "a.json", token_uri=f"{proxy.url}/token")
    client = jvm.client({**properties, FILE: str(file), TIMEOUT: "700"}, raw=True)
    start = time.monotonic()
    with pytest.raises(KmsUnavailableError) as raised:
        client.wrap(DEK, key)
    problem(raised, key, says)
    assert time.monotonic() - start < 3
