"""AWS KMS: keys, wrapped keys that stock Iceberg shares, encryption contexts, logins, properties."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from doubles.faults import FaultProxy, Status
from harness.jvm import ENVIRONMENT, Client, Jvm, start_jvm
from servers.aws import ACCOUNT, REGION, AwsServer

from pyspark_iceberg_crypto import errors

KEY = bytes(range(16))
STOCK = "org.apache.iceberg.aws.AwsKeyManagementClient"
SECRET = ENVIRONMENT["AWS_SECRET_ACCESS_KEY"]


def ours(url: str, region: str = REGION, **more: str) -> dict[str, str]:
    """A catalog's properties for our client; `more` are those below encryption.kms.aws."""
    own = {"region": region, "endpoint": url, **more}
    return {"encryption.kms-type": "aws"} | {f"encryption.kms.aws.{k}": v for k, v in own.items()}


def stock(url: str, region: str = REGION, **more: str) -> dict[str, str]:
    return {
        "encryption.kms-impl": STOCK,
        "client.region": region,
        "kms.endpoint": url,
        **{f"kms.{name.replace('_', '-')}": value for name, value in more.items()},
    }


@pytest.fixture
def client(jvm: Jvm, moto: AwsServer) -> Client:
    return jvm.client(ours(moto.url), raw=True)


@pytest.fixture(params=["moto", pytest.param("ministack", marks=pytest.mark.nightly)])
def server(request: pytest.FixtureRequest) -> AwsServer:
    return request.getfixturevalue(request.param)


def test_wraps_under_ids_arns_and_aliases(client: Client, moto: AwsServer) -> None:
    key = moto.create_key()
    moto.boto("kms").create_alias(AliasName="alias/orders", TargetKeyId=key)
    prefix = f"arn:aws:kms:{REGION}:{ACCOUNT}"
    names = [key, f"{prefix}:key/{key}", "alias/orders", f"{prefix}:alias/orders"]
    blobs = [client.wrap(KEY, name) for name in names]
    for blob in blobs:
        assert KEY not in blob
        assert [client.unwrap(blob, name) for name in names] == [KEY] * 4


@pytest.mark.parametrize("length", [16, 24, 32])
def test_oracle_unwraps_what_we_wrap(client: Client, moto: AwsServer, length: int) -> None:
    """boto3, told nothing but the blob."""
    data = bytes(range(length))
    blob = client.wrap(data, moto.create_key())
    assert moto.boto("kms").decrypt(CiphertextBlob=blob)["Plaintext"] == data


def test_wrapped_keys_are_stock_icebergs_both_ways(jvm: Jvm, server: AwsServer) -> None:
    key = server.create_key()
    here = jvm.client(ours(server.url), raw=True)
    there = jvm.client(stock(server.url), raw=True)
    assert there.unwrap(here.wrap(KEY, key), key) == KEY
    assert here.unwrap(there.wrap(KEY, key), key) == KEY


def test_takes_stock_icebergs_properties(jvm: Jvm, moto: AwsServer) -> None:
    """A table moves over: the class is all that changes."""
    properties = stock(moto.url)
    del properties["encryption.kms-impl"]
    properties["client.credentials-provider"] = (
        "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
    )
    client = jvm.client(properties | {"encryption.kms-type": "aws"}, raw=True)
    key = moto.create_key()
    assert client.unwrap(client.wrap(KEY, key), key) == KEY


def test_needs_no_permission_but_encrypt_and_decrypt(
    jvm: Jvm, moto: AwsServer, faults: Callable[..., FaultProxy]
) -> None:
    proxy = faults(moto.port)
    client = jvm.client(ours(proxy.url))
    key = moto.create_key()
    assert client.unwrap(client.wrap(KEY, key), key) == KEY
    client.check(key)
    actions = {seen["x-amz-target"] for seen in proxy.headers}
    assert actions == {"TrentService.Encrypt", "TrentService.Decrypt"}
    assert all(json.loads(body)["KeyId"] == key for body in proxy.bodies)


CONTEXT = {"encryption-context.table": "sales", "encryption-context.env": "prod"}


def test_encryption_context(jvm: Jvm, server: AwsServer, faults: Callable[..., FaultProxy]) -> None:
    proxy = faults(server.port)
    key = server.create_key()
    client = jvm.client(ours(proxy.url, **CONTEXT), raw=True)
    blob = client.wrap(KEY, key)
    assert json.loads(proxy.bodies[0])["EncryptionContext"] == {"table": "sales", "env": "prod"}
    assert client.unwrap(blob, key) == KEY
    for other in (
        {},
        {"encryption-context.table": "sales"},
        {**CONTEXT, "encryption-context.env": "x"},
    ):
        with pytest.raises(errors.BadWrappedKeyError, match="encryption context"):
            jvm.client(ours(server.url, **other), raw=True).unwrap(blob, key)


def test_encryption_context_with_the_tables_uuid(
    jvm: Jvm, moto: AwsServer, faults: Callable[..., FaultProxy]
) -> None:
    """A key is unwrapped for its table alone: by another session and an executor, and not from the cache either."""
    proxy = faults(moto.port)
    key = moto.create_key()
    properties = ours(
        proxy.url, **{"encryption-context.table": "{table-uuid}", "encryption-context.lake": "l"}
    )
    catalogs = jvm.client(properties)
    blob = catalogs.of_table("uuid-of-sales").wrap(KEY, key)
    context = {"table": "uuid-of-sales", "lake": "l"}
    assert json.loads(proxy.bodies[0])["EncryptionContext"] == context
    told = moto.boto("kms").decrypt(CiphertextBlob=blob, EncryptionContext=context)
    assert told["Plaintext"] == KEY
    later = jvm.client(properties)
    assert later.of_table("uuid-of-sales").travelled().unwrap(blob, key) == KEY
    for session in (catalogs, later):
        with pytest.raises(errors.BadWrappedKeyError, match="encryption context") as caught:
            session.of_table("uuid-of-other").unwrap(blob, key)
        assert "another table's UUID" in caught.value.hint
    asked = len(proxy.bodies)
    with pytest.raises(errors.ConfigurationError, match="asks for the table's UUID"):
        catalogs.wrap(KEY, key)
    assert len(proxy.bodies) == asked, "nothing was sent"
    catalogs.check(key)
    assert json.loads(proxy.bodies[-1])["EncryptionContext"] == {"table": "none", "lake": "l"}


@pytest.mark.parametrize("value", ["{catalog}", "{table}", "{TABLE-UUID}", "x-{table-uuid}", "{}"])
def test_unknown_placeholders_are_refused_at_the_start(jvm: Jvm, value: str) -> None:
    name = "encryption.kms.aws.encryption-context.a"
    with pytest.raises(errors.ConfigurationError) as caught:
        jvm.client(ours("http://127.0.0.1:1") | {name: value})
    assert f"{name} cannot be '{value}'" in caught.value.message
    assert ("Write a fixed name:" in caught.value.hint) == (value == "{catalog}")


def test_encryption_context_keeps_stock_clients_out(jvm: Jvm, moto: AwsServer) -> None:
    """It is the user's choice, and says so in docs/kms/aws.md."""
    key = moto.create_key()
    here = jvm.client(ours(moto.url, **CONTEXT), raw=True)
    there = jvm.client(stock(moto.url), raw=True)
    with pytest.raises(Exception, match="InvalidCiphertextException"):
        there.unwrap(here.wrap(KEY, key), key)
    with pytest.raises(errors.BadWrappedKeyError):
        here.unwrap(there.wrap(KEY, key), key)


def test_replica_unwraps_in_another_region(jvm: Jvm, ministack: AwsServer) -> None:
    """On ministack; moto's blobs have no room for a multi-Region key's id."""
    key = ministack.create_key(MultiRegion=True)
    kms = ministack.boto("kms")
    primary = kms.describe_key(KeyId=key)["KeyMetadata"]["Arn"]
    kms.replicate_key(KeyId=key, ReplicaRegion="eu-west-1")
    replica = primary.replace(REGION, "eu-west-1")
    here = jvm.client(ours(ministack.url), raw=True)
    there = jvm.client(ours(ministack.url, "eu-west-1"), raw=True)
    blob = here.wrap(KEY, primary)
    assert there.unwrap(blob, replica) == KEY
    assert here.unwrap(there.wrap(KEY, replica), key) == there.unwrap(blob, key) == KEY
    with pytest.raises(errors.ConfigurationError, match="ARN in eu-west-1, or its id"):
        there.wrap(KEY, primary)


def test_arn_of_another_account_is_sent_as_it_is(
    jvm: Jvm, moto: AwsServer, faults: Callable[..., FaultProxy]
) -> None:
    """moto takes an ARN's account for its own; whether a login may use it, AWS alone can tell."""
    proxy = faults(moto.port)
    client = jvm.client(ours(proxy.url), raw=True)
    arn = f"arn:aws:kms:{REGION}:999999999999:key/{moto.create_key()}"
    assert client.unwrap(client.wrap(KEY, arn), arn) == KEY
    assert [json.loads(body)["KeyId"] for body in proxy.bodies] == [arn, arn]


def test_rsa_keys(jvm: Jvm, ministack: AwsServer) -> None:
    key = ministack.create_key(KeySpec="RSA_2048", KeyUsage="ENCRYPT_DECRYPT")
    algorithm = "RSAES_OAEP_SHA_256"
    named = {"kms.encryption-algorithm-spec": algorithm}
    client = jvm.client(ours(ministack.url) | named, raw=True)
    blob = client.wrap(KEY, key)
    assert client.unwrap(blob, key) == KEY
    assert not client.authenticates(key)
    other = jvm.client(stock(ministack.url, encryption_algorithm_spec=algorithm), raw=True)
    assert other.unwrap(blob, key) == client.unwrap(other.wrap(KEY, key), key) == KEY
    symmetric = jvm.client(ours(ministack.url), raw=True)
    assert symmetric.authenticates(key), "a promise to refuse what was wrapped by RSA:"
    with pytest.raises(errors.NotSupportedError, match="symmetric key"):
        symmetric.wrap(KEY, key)
    with pytest.raises(errors.IcebergCryptoError):
        symmetric.unwrap(blob, key)


@pytest.mark.parametrize(
    ("name", "hint", "error"),
    [
        ("orders-key", "did you mean 'alias/orders-key'", errors.KeyNotFoundError),
        ("alias/none", "Check the name, the region and the account", errors.KeyNotFoundError),
        (
            "12345678-1234-1234-1234-123456789012",
            "Check the name, the region and the account",
            errors.KeyNotFoundError,
        ),
        (f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0", "not deleted", errors.KeyNotFoundError),
        (
            f"arn:aws:kms:eu-west-1:{ACCOUNT}:key/0",
            "Set encryption.kms.aws.region=eu-west-1",
            errors.ConfigurationError,
        ),
    ],
)
def test_missing_keys(
    client: Client, name: str, hint: str, error: type[errors.IcebergCryptoError]
) -> None:
    with pytest.raises(error) as caught:
        client.wrap(KEY, name)
    assert f"'{name}'" in caught.value.message
    assert "AWS KMS at" in caught.value.message
    assert hint in caught.value.hint


def test_text_says_where(jvm: Jvm) -> None:
    assert jvm.client({"encryption.kms-type": "aws"}).text() == "AWS KMS"
    assert jvm.client(ours("https://h:1")).text() == "AWS KMS at https://h:1"
    assert jvm.client(ours("http://[::1]:1")).text() == "AWS KMS at http://[::1]:1"
    named = {"encryption.kms-type": "aws", "client.region": "eu-west-1"}
    assert jvm.client(named).text() == "AWS KMS in eu-west-1"


BAD_PROPERTIES = {
    "encryption.kms.aws.region": ("", "is empty"),
    "client.region": ("eu-west-1", "contradict each other"),
    "kms.endpoint": ("http://127.0.0.1:2", "contradict each other"),
    "encryption.kms.aws.endpoint": ("127.0.0.1:1", "is not a URL"),
    "encryption.kms.aws.encryption-contxt.a": ("b", "There is no catalog property"),
    "encryption.kms.aws.encryption-context": ("a=b", "There is no catalog property"),
    "encryption.kms.aws.encryption-context.a": (" ", "is empty"),
    "encryption.kms.aws.encryption-context.aws:a": ("b", "reserved by AWS"),
    "kms.encryption-algorithm-spec": ("AES", "is not an algorithm"),
    "encryption.kms.call-timeout-ms": ("0", "milliseconds"),
    "encryption.kms.aws.secret-access-key": (SECRET, "would show a secret"),
    "encryption.kms.aws.access-key-id": (SECRET, "would show a secret"),
    "encryption.kms.aws.session-token": (SECRET, "would show a secret"),
    "client.credentials-provider.password": (SECRET, "would show a secret"),
    "client.credentials-provider.apiToken": (SECRET, "would show a secret"),
    "kms.secret_key": (SECRET, "would show a secret"),
    "http-client.proxy-endpoint": (f"http://me:{SECRET}@proxy", "has a login in its URL"),
}


@pytest.mark.parametrize("name", BAD_PROPERTIES)
def test_bad_properties_are_refused_at_the_start(jvm: Jvm, name: str) -> None:
    value, problem = BAD_PROPERTIES[name]
    with pytest.raises(errors.ConfigurationError) as caught:
        jvm.client(ours("http://127.0.0.1:1") | {name: value})
    assert problem in caught.value.message
    assert name in caught.value.message
    assert SECRET not in str(caught.value) + str(caught.value.__cause__)


@pytest.mark.parametrize("name", ["kms.endpoint", "encryption.kms.aws.endpoint"])
@pytest.mark.parametrize("host", ["kms.example.com", "10.0.0.1:8080", "127.0.0.1.example.com"])
def test_plain_http_stays_on_this_machine(jvm: Jvm, name: str, host: str) -> None:
    """Or a key would be sent in the clear."""
    with pytest.raises(errors.ConfigurationError, match="would send keys in plaintext") as caught:
        jvm.client({"encryption.kms-type": "aws", name: f"http://{host}"})
    assert name in caught.value.message
    assert "https" in caught.value.hint
    assert jvm.client({"encryption.kms-type": "aws", name: f"https://{host}"})


def test_asymmetric_keys_have_no_context(jvm: Jvm) -> None:
    properties = ours("https://h:1", **CONTEXT) | {
        "kms.encryption-algorithm-spec": "RSAES_OAEP_SHA_1"
    }
    with pytest.raises(errors.ConfigurationError, match="supports no encryption context"):
        jvm.client(properties)


def test_no_region(jvm: Jvm) -> None:
    client = jvm.client(
        {"encryption.kms-type": "aws", "encryption.kms.aws.endpoint": "https://h:1"}
    )
    with pytest.raises(errors.ConfigurationError, match="no region is set") as caught:
        client.wrap(KEY, "alias/orders")
    assert "encryption.kms.aws.region" in caught.value.hint


def test_no_credentials(jvm: Jvm, moto: AwsServer) -> None:
    provider = "software.amazon.awssdk.auth.credentials.SystemPropertyCredentialsProvider"
    client = jvm.client(ours(moto.url) | {"client.credentials-provider": provider})
    with pytest.raises(errors.LoginFailedError, match="no credentials were found") as caught:
        client.wrap(KEY, "alias/orders")
    assert "'alias/orders'" in caught.value.message


def test_credentials_provider_that_is_none(jvm: Jvm, moto: AwsServer) -> None:
    client = jvm.client(ours(moto.url) | {"client.credentials-provider": "com.example.None"})
    with pytest.raises(errors.ConfigurationError, match="com.example.None"):
        client.wrap(KEY, "alias/orders")


ROLE = {
    "encryption.kms-type": "aws",
    "client.factory": "org.apache.iceberg.aws.AssumeRoleAwsClientFactory",
    "client.assume-role.arn": f"arn:aws:iam::{ACCOUNT}:role/spark",
    "client.assume-role.region": REGION,
    "client.assume-role.tags.token": "a tag's value is no secret",
}


@pytest.fixture(scope="module")
def before_sts(moto: AwsServer) -> Iterator[FaultProxy]:
    started = FaultProxy(moto.port).start()
    yield started
    started.stop()


@pytest.fixture
def sts(before_sts: FaultProxy) -> Iterator[FaultProxy]:
    yield before_sts
    before_sts.mode = "pass"


@pytest.fixture(scope="module")
def role_jvm(
    moto: AwsServer, before_sts: FaultProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Jvm]:
    """One whose SDK finds KMS and STS at moto by itself: Iceberg's factory for roles takes no endpoint."""
    endpoints = {"AWS_ENDPOINT_URL_KMS": moto.url, "AWS_ENDPOINT_URL_STS": before_sts.url}
    started = start_jvm(tmp_path_factory.mktemp("role-jvm") / "log", endpoints)
    yield started
    started.stop()


@pytest.mark.nightly
def test_takes_a_client_factory(role_jvm: Jvm, moto: AwsServer) -> None:
    client = role_jvm.client(ROLE, raw=True)
    key = moto.create_key()
    assert client.unwrap(client.wrap(KEY, key), key) == KEY
    assert client.travelled().unwrap(client.wrap(KEY, key), key) == KEY


def test_an_arn_of_another_region_than_the_clients_own(role_jvm: Jvm) -> None:
    """No property of the KMS says it: as with AWS_REGION or a profile, only the client knows it."""
    arn = f"arn:aws:kms:eu-west-1:{ACCOUNT}:key/0"
    with pytest.raises(errors.ConfigurationError, match="key/0") as caught:
        role_jvm.client(ROLE, raw=True).wrap(KEY, arn)
    assert f"one of eu-west-1, and the client asks {REGION}" in caught.value.hint


def test_role_that_may_not_be_assumed(role_jvm: Jvm, sts: FaultProxy) -> None:
    body = (
        "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User: u is not "
    )
    body += "authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>"
    sts.mode = ("status", 403, {"Content-Type": "text/xml"}, body)
    with pytest.raises(errors.LoginFailedError, match="login refused by AWS's Sts") as caught:
        role_jvm.client(ROLE).wrap(KEY, "alias/orders")
    assert "client.assume-role.arn" in caught.value.hint
    assert "'alias/orders'" in caught.value.message


ECHO = (
    "The request signature we calculated does not match the signature you provided. The Canonical String for "
    "this request should have been 'POST x-amz-security-token:session-token-31415926'"
)


def sts_refuses(code: str, status: int, message: str = ECHO) -> Status:
    body = f"<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    return ("status", status, {"Content-Type": "text/xml"}, body)


@pytest.mark.parametrize(
    "code",
    ["SignatureDoesNotMatch", "InvalidClientTokenId", "ExpiredToken", "IncompleteSignature", "Odd"],
)
def test_echo_of_a_request_for_a_role_is_not_told(
    role_jvm: Jvm, sts: FaultProxy, code: str
) -> None:
    sts.mode = sts_refuses(code, 403)
    with pytest.raises(errors.LoginFailedError, match="login refused by AWS's Sts") as caught:
        role_jvm.client(ROLE).wrap(KEY, "alias/orders")
    assert code in caught.value.message
    assert "session-token" not in f"{caught.value} {caught.value.__cause__}"
    assert "session-token" not in role_jvm.log.read_text()


def test_wrong_clock_is_told_for_a_role_too(role_jvm: Jvm, sts: FaultProxy) -> None:
    sts.mode = sts_refuses("SignatureDoesNotMatch", 403, "Signature expired: 2026 is now earlier")
    with pytest.raises(errors.LoginFailedError, match="differ too much") as caught:
        role_jvm.client(ROLE).wrap(KEY, "alias/orders")
    assert "clock" in caught.value.hint


@pytest.mark.nightly
def test_echo_in_a_chain_of_providers_is_not_told(
    sts: FaultProxy, start: Callable[..., Jvm], tmp_path: Path
) -> None:
    """The chain of the SDK quotes what STS answered to a profile with a role."""
    config = tmp_path / "config"
    config.write_text(
        f"[default]\nrole_arn = arn:aws:iam::{ACCOUNT}:role/spark\nsource_profile = source\n"
        f"region = {REGION}\n[profile source]\naws_access_key_id = AKIAONLYFORTESTS0002\n"
        "aws_secret_access_key = only-for-tests\naws_session_token = session-token-31415926\n"
    )
    environment = {
        "AWS_ENDPOINT_URL_STS": sts.url,
        "AWS_CONFIG_FILE": str(config),
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
    }
    started = start(environment)
    sts.mode = sts_refuses("SignatureDoesNotMatch", 403)
    with pytest.raises(errors.LoginFailedError, match="login refused") as caught:
        started.client(ours("https://127.0.0.1:1")).wrap(KEY, "alias/orders")
    told = f"{caught.value} {caught.value.__cause__}"  # asks the JVM
    assert "session-token" not in told
    assert "session-token" not in started.log.read_text()


@pytest.mark.parametrize(
    "setting", [{"kms.endpoint": "http://127.0.0.1:1"}, {"encryption.kms.aws.region": "eu-west-1"}]
)
def test_factory_that_leaves_a_setting_out(role_jvm: Jvm, setting: dict[str, str]) -> None:
    client = role_jvm.client(ROLE | setting)
    with pytest.raises(
        errors.ConfigurationError, match="AssumeRoleAwsClientFactory creates a KMS client"
    ):
        client.wrap(KEY, "alias/orders")
