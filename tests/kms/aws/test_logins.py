"""How AWS's SDK logs in: each way against a double of who gives the credentials, in a JVM of its own.

KMS is moto behind a proxy, which sees by whose credentials a request was signed.
"""

import json
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from hashlib import sha1
from pathlib import Path

import pytest
from doubles.faults import FaultProxy, Status
from harness.jvm import Jvm
from servers.aws import ACCOUNT, REGION, AwsServer

from pyspark_iceberg_crypto import errors

KEY = bytes(range(16))
ROLE = f"arn:aws:iam::{ACCOUNT}:role/spark"
NOBODY = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}


@pytest.fixture
def kms(moto: AwsServer, faults: Callable[..., FaultProxy]) -> FaultProxy:
    return faults(moto.port)


@pytest.fixture
def giver(moto: AwsServer, faults: Callable[..., FaultProxy]) -> FaultProxy:
    """Who gives credentials: a metadata service, STS, SSO's portal."""
    return faults(moto.port)


def properties(kms: FaultProxy, **more: str) -> dict[str, str]:
    return {
        "encryption.kms-type": "aws",
        "encryption.kms.aws.region": REGION,
        "encryption.kms.aws.endpoint": kms.url,
        "encryption.kms.retry.max-attempts": "1",
        "encryption.kms.circuit-breaker.failures": "0",
        **more,
    }


def signer(kms: FaultProxy) -> str:
    """The access key id that signed the last request for KMS."""
    return kms.headers[-1]["authorization"].partition("Credential=")[2].partition("/")[0]


def credentials(name: str, minutes: int = 60, token: str = "session-token-only-for-tests") -> str:
    """As the container's and the instance's services write them."""
    ends = datetime.now(timezone.utc) + timedelta(minutes=minutes)
    found = {
        "Code": "Success",
        "AccessKeyId": name,
        "SecretAccessKey": "only-for-tests",
        "Token": token,
        "Expiration": f"{ends:%Y-%m-%dT%H:%M:%SZ}",
    }
    return json.dumps(found)


def answer(body: str) -> Status:
    return ("status", 200, {"Content-Type": "application/json"}, body)


def pod_token(folder: Path) -> Path:
    """As EKS projects it into a pod: a link, readable by all."""
    data = folder / "data"
    data.write_text("pod-token-only-for-tests")
    data.chmod(0o644)
    token = folder / "token"
    token.symlink_to(data)
    return token


@pytest.mark.nightly
def test_pod_identity_and_ecs(
    start: Callable[..., Jvm], kms: FaultProxy, giver: FaultProxy, moto: AwsServer, tmp_path: Path
) -> None:
    token = pod_token(tmp_path)
    environment = dict(
        **NOBODY,
        AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{giver.url}/v1/credentials",
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token),
    )
    jvm = start(environment)
    key = moto.create_key()
    client = jvm.client(properties(kms))
    for mode in (("status", 503, {}, "only-for-tests"), "down"):
        giver.mode = mode
        with pytest.raises(errors.KmsUnavailableError, match="gives this host its") as blip:
            client.wrap(KEY, key)
        assert "AWS_CONTAINER_CREDENTIALS_FULL_URI" in blip.value.hint
        assert "only-for-tests" not in f"{blip.value} {blip.value.__cause__}"
    giver.mode = answer(credentials("ASIAPOD1", minutes=10))
    client.wrap(KEY, key)
    assert signer(kms) == "ASIAPOD1"
    assert giver.headers[-1]["authorization"] == "pod-token-only-for-tests"
    assert b"only-for-tests" not in client.serialized()

    giver.mode = ("status", 500, {}, "")  # credentials that are renewed early, and are still good
    assert client.wrap(KEY, key)
    giver.mode = "down"
    assert client.wrap(KEY, key)
    assert signer(kms) == "ASIAPOD1"

    giver.mode = answer(credentials("ASIAPOD2", token="session-token-only-for-tests\n"))
    for http in ("apache", "urlconnection"):
        other = jvm.client(properties(kms, **{"http-client.type": http}))
        told = ""
        try:
            other.wrap(KEY, key)
        except errors.IcebergCryptoError as error:
            told = f"{error} {error.__cause__}"
        assert "only-for-tests" not in told

    (tmp_path / "data").chmod(0o666)
    with pytest.raises(errors.ConfigurationError, match="may be changed by others") as caught:
        client.wrap(KEY, key)
    assert "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE" in caught.value.message
    assert "only-for-tests" not in jvm.log.read_text()


@pytest.mark.nightly
def test_instance_profile(
    start: Callable[..., Jvm], kms: FaultProxy, giver: FaultProxy, moto: AwsServer
) -> None:
    """The role of an EC2 instance, by the second version of its metadata service."""
    jvm = start(
        dict(
            **NOBODY, AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=giver.url
        )
    )
    giver.next = [
        answer("metadata-token"),
        answer("spark-role"),
        answer(credentials("ASIAINSTANCE")),
    ]
    jvm.client(properties(kms)).wrap(KEY, moto.create_key())
    assert signer(kms) == "ASIAINSTANCE"
    assert giver.requests[0] == "PUT /latest/api/token"
    assert giver.requests[-1].endswith("/spark-role")
    assert giver.headers[-1]["x-aws-ec2-metadata-token"] == "metadata-token"


@pytest.mark.nightly
def test_irsa(
    start: Callable[..., Jvm], kms: FaultProxy, giver: FaultProxy, moto: AwsServer, tmp_path: Path
) -> None:
    """A service account's role in EKS: web identity at STS."""
    token = pod_token(tmp_path)
    environment = dict(
        **NOBODY,
        AWS_WEB_IDENTITY_TOKEN_FILE=str(token),
        AWS_ROLE_ARN=ROLE,
        AWS_ENDPOINT_URL_STS=giver.url,
        AWS_REGION=REGION,
    )
    jvm = start(environment)
    client = jvm.client(properties(kms))
    for mode in (("status", 503, {}, ""), "down"):
        giver.mode = mode
        with pytest.raises(
            errors.KmsUnavailableError, match="the service that gives this host its login"
        ):
            client.wrap(KEY, "alias/orders")
    giver.mode = "pass"
    client.wrap(KEY, moto.create_key())
    assert b"AssumeRoleWithWebIdentity" in giver.bodies[0]
    assert b"pod-token-only-for-tests" in giver.bodies[0]
    assert signer(kms).startswith("ASIA")
    (tmp_path / "data").chmod(0o664)
    with pytest.raises(errors.ConfigurationError, match="AWS_WEB_IDENTITY_TOKEN_FILE") as caught:
        client.wrap(KEY, "alias/orders")
    assert "chmod go-w" in caught.value.hint


@pytest.mark.nightly
def test_profiles(
    start: Callable[..., Jvm], kms: FaultProxy, giver: FaultProxy, moto: AwsServer, tmp_path: Path
) -> None:
    """Keys in a profile, a replaced file, a profile with a role, and SSO with and without its session."""
    shared, config = tmp_path / "credentials", tmp_path / "config"
    home = tmp_path / "home"
    cache = home / ".aws" / "sso" / "cache"
    cache.mkdir(parents=True)
    ends = datetime.now(timezone.utc) + timedelta(hours=1)
    login = {
        "accessToken": "sso-token-only-for-tests",
        "expiresAt": f"{ends:%Y-%m-%dT%H:%M:%SZ}",
        "region": REGION,
        "startUrl": "https://acme.awsapps.com/start",
    }
    for name in ("https://acme.awsapps.com/start", "acme"):
        (cache / f"{sha1(name.encode()).hexdigest()}.json").write_text(json.dumps(login))
    account = f"sso_account_id = {ACCOUNT}\nsso_role_name = spark\n"
    start_url = f"sso_start_url = https://acme.awsapps.com/start\nsso_region = {REGION}\n"
    config.write_text(
        f"[profile role]\nrole_arn = {ROLE}\nsource_profile = default\nregion = {REGION}\n[profile "
        f"sso]\n{account}{start_url}[profile session]\nsso_session = acme\n{account}[sso-session acme]\n{start_url}"
    )

    def keys(name: str) -> None:
        shared.write_text(
            f"[default]\naws_access_key_id = {name}\naws_secret_access_key = only-for-tests\n"
        )

    keys("AKIAPROFILE1")
    environment = dict(
        **NOBODY,
        HOME=str(home),
        AWS_SHARED_CREDENTIALS_FILE=str(shared),
        AWS_CONFIG_FILE=str(config),
        AWS_ENDPOINT_URL_STS=giver.url,
        AWS_ENDPOINT_URL_SSO=giver.url,
    )
    jvm = start(environment, [f"-Duser.home={home}"])
    key = moto.create_key()
    client = jvm.client(properties(kms))
    client.wrap(KEY, key)
    assert signer(kms) == "AKIAPROFILE1"
    keys("AKIAPROFILE2")
    end = time.monotonic() + 30
    while signer(kms) != "AKIAPROFILE2" and time.monotonic() < end:
        client.wrap(KEY, key)  # the SDK looks at the file's time every few seconds
        time.sleep(0.2)
    assert signer(kms) == "AKIAPROFILE2"

    for file in (shared, config):
        file.chmod(0o664)
        with pytest.raises(errors.ConfigurationError, match="may be changed by others") as caught0:
            client.wrap(KEY, key)
        assert str(file) in caught0.value.message
        file.chmod(0o644)

    def of_profile(name: str) -> None:
        jvm.view.java.lang.System.setProperty("aws.profile", name)
        jvm.client(properties(kms)).wrap(KEY, key)

    of_profile("role")
    assert b"AssumeRole" in giver.bodies[-1]
    assert signer(kms).startswith("ASIA")

    ends_ms = int(ends.timestamp() * 1000)
    role = {"accessKeyId": "ASIASSO", "secretAccessKey": "x", "sessionToken": "y"}
    giver.mode = answer(json.dumps({"roleCredentials": {**role, "expiration": ends_ms}}))
    of_profile("sso")
    assert signer(kms) == "ASIASSO"
    assert giver.headers[-1]["x-amz-sso_bearer_token"] == "sso-token-only-for-tests"

    with pytest.raises(errors.LoginFailedError, match="the profile has an sso_session") as caught:
        of_profile("session")
    assert "Add software.amazon.awssdk:ssooidc:2." in caught.value.hint
    assert "aws sso login" in caught.value.hint
    of_profile("default")
    with (config).open("a") as more:
        more.write("[profile signin]\nlogin_session = arn:aws:iam::123456789012:user/x\n")
    with pytest.raises(errors.ConfigurationError, match="needs a module of the AWS SDK") as caught2:
        of_profile("signin")
    assert "Add software.amazon.awssdk:signin:2." in caught2.value.hint
