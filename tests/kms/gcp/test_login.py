"""The Google Cloud KMS client: logins of every kind, their faults and the network's, and that no secret travels."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from doubles.faults import FaultProxy
from doubles.gcp_login import OWNER, REFRESH_TOKEN, SUBJECT_TOKEN
from doubles.gcp_world import DEK, NAMED, SECRETS, GcpWorld
from harness.jvm import Jvm
from harness.refused import problem_of
from harness.tls import make_authority

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    KmsUnavailableError,
    LoginFailedError,
)

ENDPOINT = "encryption.kms.gcp.endpoint"
FILE = "encryption.kms.gcp.credentials-file"
TIMEOUT = "encryption.kms.call-timeout-ms"
Faults = Callable[..., FaultProxy]

problem = problem_of(NAMED, secrets=SECRETS)


def test_the_login_asks_for_cloud_kms_and_no_more(at: GcpWorld) -> None:
    client = at.client()
    assert client.unwrap(client.wrap(DEK, at.key), at.key) == DEK
    (token,) = at.double.login.tokens.values()  # one login serves all calls
    assert (token.account, token.scopes) == (OWNER, {"https://www.googleapis.com/auth/cloudkms"})


def test_tls(at: GcpWorld) -> None:
    url = at.faults(at.double.port, at.authority.server).url
    client = at.client(endpoint=url)
    assert client.unwrap(client.wrap(DEK, at.key), at.key) == DEK
    assert client.text() == f"Google Cloud KMS at {url}"
    stranger = at.faults(at.double.port, make_authority(at.folder).server).url
    with pytest.raises(ConfigurationError, match="TLS certificate is not trusted"):
        at.client(raw=False, endpoint=stranger).wrap(DEK, at.key)
    file = at.double.login.service_account(at.folder / "a.json", token_uri=f"{stranger}/token")
    bad = at.client(raw=False, credentials_file=file)
    at.refuses(ConfigurationError, bad, "TLS certificate is not trusted", "token_uri", str(file))


def test_authorized_user(at: GcpWorld) -> None:
    file = at.double.login.authorized_user(at.folder / "user.json")
    client = at.client(credentials_file=file)
    assert client.unwrap(client.wrap(DEK, at.key), at.key) == DEK
    file.write_text(file.read_text().replace(REFRESH_TOKEN, "only-for-tests-revoked"))
    bad = at.client(credentials_file=file)
    at.refuses(
        LoginFailedError, bad, "Token has been expired or revoked", "log in again", str(file)
    )


def test_external_account(at: GcpWorld) -> None:
    """Workload identity federation: the file holds no secret and may be readable by all."""
    url = at.faults(at.double.port, at.authority.server).url
    for impersonate in ("", OWNER):
        file = at.double.login.external_account(at.folder / "external.json", url, impersonate)
        client = at.client(credentials_file=file)
        assert client.unwrap(client.wrap(DEK, at.key), at.key) == DEK
    subject = file.with_suffix(".subject")
    for changed in (file, subject):  # who may write it chooses who logs in, or where
        changed.chmod(0o666)
        with pytest.raises(ConfigurationError, match="may be changed by others") as open_to_all:
            at.client(credentials_file=file).wrap(DEK, at.key)
        assert f"chmod go-w {changed}" in open_to_all.value.hint
        changed.chmod(0o644)
    client.wrap(DEK, at.key)
    subject.chmod(0o646)
    with pytest.raises(ConfigurationError, match="may be changed by others"):
        client.wrap(DEK, at.key)
    subject.chmod(0o644)
    subject.write_text("only-for-tests-wrong")
    bad = at.client(credentials_file=file)
    at.refuses(LoginFailedError, bad, "The subject token is not valid", str(file))
    subject.write_text(SUBJECT_TOKEN)


def test_a_line_break_after_a_token(at: GcpWorld) -> None:
    """An HTTP client would quote the whole token in its error: ours, or Google's when it impersonates."""
    at.double.login.after = "\n"
    client = at.client(raw=False)
    with pytest.raises(ConfigurationError, match="Authorization has a character") as ours:
        client.wrap(DEK, at.key)
    problem(ours, "is a line break")
    url = at.faults(at.double.port, at.authority.server).url
    file = at.double.login.external_account(at.folder / "external.json", url, OWNER)
    googles = at.client(raw=False, credentials_file=file)
    for error in (ours.value, at.refuses(LoginFailedError, googles, "header")):
        assert "only-for-tests" not in f"{error} {error.__cause__}"
    assert "only-for-tests" not in at.jvm.log.read_text()
    at.double.login.after = ""
    assert client.wrap(DEK, at.key), "the bad one is not kept"


def test_application_default_credentials(at: GcpWorld, gcloud: Path) -> None:
    del at.properties[FILE]
    client = at.client()
    with pytest.raises(LoginFailedError, match="no application default credentials") as raised:
        client.wrap(DEK, at.key)
    assert "gcloud auth application-default login" in raised.value.hint
    assert FILE in raised.value.hint
    at.double.login.authorized_user(gcloud / "application_default_credentials.json")
    assert client.unwrap(client.wrap(DEK, at.key), at.key) == DEK, "found when they are there"
    at.double.login.revoke()
    assert client.unwrap(client.wrap(DEK, at.key), at.key) == DEK, "renewed"
    at.double.login.service_account(gcloud / "application_default_credentials.json")
    before = set(at.double.login.tokens)
    assert client.wrap(DEK, at.key)
    (new,) = set(at.double.login.tokens) - before
    assert at.double.login.tokens[new].account == OWNER, "replaced"
    (gcloud / "application_default_credentials.json").chmod(0o620)
    with pytest.raises(ConfigurationError, match="may be changed by others"):
        at.client().wrap(DEK, at.key)
    (gcloud / "application_default_credentials.json").unlink()


def test_a_machine_s_service_account(at: GcpWorld, start: Callable[..., Jvm]) -> None:
    """On Google's machines, GKE and Dataproc the metadata server gives tokens."""
    del at.properties[FILE]
    environment = {
        "CLOUDSDK_CONFIG": str(at.folder),
        "GCE_METADATA_HOST": f"127.0.0.1:{at.double.port}",
        "GOOGLE_APPLICATION_CREDENTIALS": "",
        "NO_GCE_CHECK": "",
    }
    client = start(environment).client(at.properties, raw=True)
    assert client.unwrap(client.wrap(DEK, at.key), at.key) == DEK
    at.double.login.revoke()
    client.wrap(DEK, at.key)
    assert at.double.login.logins == 2

    file = at.folder / "application_default_credentials.json"
    at.double.login.authorized_user(file)
    assert client.wrap(DEK, at.key), "a file comes before the machine"
    file.unlink()
    at.double.login.revoke()
    before = set(at.double.login.tokens)
    with pytest.raises(ConfigurationError, match="does not exist"):
        client.wrap(DEK, at.key)
    assert set(at.double.login.tokens) == before, "the machine is no stand-in for a missing file"


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
def test_bad_credentials_files(at: GcpWorld, content: str | None, mode: int, says: str) -> None:
    file = at.folder / "bad.json"
    if content is not None:
        file.write_text(content)
        file.chmod(mode)
    client = at.client(credentials_file=file)
    with pytest.raises(ConfigurationError, match=says) as raised:
        client.wrap(DEK, at.key)
    assert str(file) in str(raised.value)
    assert FILE in str(raised.value)
    assert raised.value.hint
    assert "only-for-tests" not in str(raised.value)


def test_a_service_account_s_broken_private_key_is_not_shown(at: GcpWorld) -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nonly-for-tests\n-----END PRIVATE KEY-----\n"
    file = at.double.login.service_account(at.folder / "broken.json", private_key=pem)
    with pytest.raises(ConfigurationError, match="has no credentials") as raised:
        at.client(credentials_file=file).wrap(DEK, at.key)
    assert "only-for-tests" not in str(raised.value)
    assert "only-for-tests" not in at.jvm.log.read_text()


def test_a_revoked_token_is_renewed_once(at: GcpWorld) -> None:
    client = at.client()
    blob = client.wrap(DEK, at.key)
    at.double.login.revoke()
    assert client.unwrap(blob, at.key) == DEK
    assert at.double.login.logins == 2


def test_an_expired_token_is_renewed(at: GcpWorld) -> None:
    at.double.login.lifetime = 1
    client = at.client()
    blob = client.wrap(DEK, at.key)
    time.sleep(1.1)
    assert client.unwrap(blob, at.key) == DEK
    assert at.double.login.logins == 2


def test_a_login_that_is_never_accepted(at: GcpWorld) -> None:
    proxy = at.faults(at.double.port)
    error = {
        "code": 401,
        "message": "Request had invalid credentials.",
        "status": "UNAUTHENTICATED",
    }
    proxy.mode = ("status", 401, {}, json.dumps({"error": error}))
    client = at.client(raw=False, endpoint=proxy.url)
    at.refuses(LoginFailedError, client, "refuses the login", "Log in again")
    assert len(proxy.requests) == 2, "one renewal, and no retry"


def test_a_deleted_account_key_and_its_replacement(at: GcpWorld) -> None:
    client = at.client()
    blob = client.wrap(DEK, at.key)
    at.double.login.delete_key()
    at.double.login.revoke()
    for _ in range(2):
        with pytest.raises(LoginFailedError) as raised:
            client.unwrap(blob, at.key)
        problem(
            raised, at.key, "Invalid JWT Signature", "new credentials file", at.properties[FILE]
        )
    at.double.login.service_account(Path(at.properties[FILE]))
    assert client.unwrap(blob, at.key) == DEK, "the file is read again"


def test_a_good_token_is_used_while_the_login_is_out_of_order(at: GcpWorld) -> None:
    """It ends within three minutes, so Google's library would not use it any more."""
    at.double.login.lifetime = 120
    proxy = at.faults(at.double.port)
    file = at.double.login.service_account(at.folder / "a.json", token_uri=f"{proxy.url}/token")
    client = at.client(raw=False, credentials_file=file)
    client.wrap(DEK, at.key)
    proxy.mode = ("status", 503, {}, "<html>busy</html>")
    proxy.forget()
    for _ in range(3):
        assert client.wrap(DEK, at.key)
    assert len(proxy.requests) <= 1, "a busy login is not asked each time"
    assert client.metrics()["errors"] == 0

    other = "other@test-project.iam.gserviceaccount.com"
    at.double.login.service_account(file, other, token_uri=f"{proxy.url}/token")
    proxy.forget()
    for _ in range(3):
        assert client.wrap(DEK, at.key)
    assert len(proxy.requests) == 1, "the login of a replaced file is asked, at once and once"
    proxy.mode = "pass"
    at.double.login.after = "\n"
    at.double.login.service_account(file, "bad@x.test", token_uri=f"{proxy.url}/token")
    assert client.wrap(DEK, at.key), "an answer that is not a token does not replace one"
    file.write_text("{")
    assert client.wrap(DEK, at.key), "half written"
    file.unlink()
    assert client.wrap(DEK, at.key), "gone for a moment"
    assert client.metrics()["errors"] == 0

    at.double.login.after = ""
    at.double.login.service_account(file, other, token_uri=f"{proxy.url}/token")
    assert client.wrap(DEK, at.key), "the login of the file that is there now"
    assert list(at.double.login.tokens.values())[-1].account == other
    file.unlink()
    at.double.login.revoke()
    with pytest.raises(ConfigurationError, match="does not exist"):
        client.wrap(DEK, at.key)


@pytest.mark.parametrize("hours", [-2, 2])
def test_clock_skew(at: GcpWorld, hours: int) -> None:
    at.double.login.clock_skew = hours * 3600
    at.refuses(LoginFailedError, at.client(raw=False), "iat and exp", "clock", at.properties[FILE])
    assert at.double.login.logins == 1, "a refusal is not tried again"


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
def test_faults_of_the_login_server(at: GcpWorld, fault: object, says: str) -> None:
    proxy = at.faults(at.double.port)
    proxy.mode = fault  # type: ignore[assignment]
    file = at.double.login.service_account(at.folder / "a.json", token_uri=f"{proxy.url}/token")
    client = at.jvm.client({**at.properties, FILE: str(file), TIMEOUT: "700"}, raw=True)
    start = time.monotonic()
    at.refuses(KmsUnavailableError, client, says)
    assert time.monotonic() - start < 3
