"""AwsKms, the set-up from Python: keys made, listed, described, rotated, and the policy for Spark."""

import json
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from doubles.faults import FaultProxy
from harness.jvm import ENVIRONMENT, Jvm
from servers.aws import ACCOUNT, REGION, AwsServer

from pyspark_iceberg_crypto import AwsKms, errors

KEY = bytes(range(16))
SECRET = ENVIRONMENT["AWS_SECRET_ACCESS_KEY"]


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")


@pytest.fixture
def kms(moto: AwsServer) -> AwsKms:
    return AwsKms(region=REGION, endpoint=moto.url)


def test_key_works_under_its_name(kms: AwsKms, jvm: Jvm) -> None:
    made = kms.create_key("setup/orders", rotation_days=90)
    assert made.key_id == "alias/setup/orders"
    assert (made.state, made.algorithm, made.versions) == ("enabled", "SYMMETRIC_DEFAULT", 1)
    assert made.detail["arn"].startswith(f"arn:aws:kms:{REGION}:{ACCOUNT}:key/")
    assert made.created is not None
    client = jvm.client(kms.properties())
    client.check(made.key_id)
    client.check(made.detail["arn"])


@pytest.mark.parametrize("name", ["", "two words", "alias/aws/s3", "alias/", "a" * 251])
def test_names_that_cannot_be(kms: AwsKms, name: str) -> None:
    with pytest.raises(errors.ConfigurationError, match="cannot be an alias"):
        kms.create_key(name)


@pytest.mark.nightly
def test_key_without_an_alias_is_taken_back(
    kms: AwsKms, moto: AwsServer, faults: Callable[..., FaultProxy]
) -> None:
    """Another program took the alias in between: no key is left that nobody knows."""
    proxy = faults(moto.port)
    taken = {"__type": "AlreadyExistsException", "message": "An alias with the name exists"}
    proxy.next = ["pass", "pass", ("status", 400, {}, json.dumps(taken))]
    with pytest.raises(errors.ConfigurationError, match="AlreadyExists"):
        AwsKms(region=REGION, endpoint=proxy.url).create_key("setup-race")
    made, looked = ["DescribeKey", "CreateKey", "CreateAlias"], ["DescribeKey"]
    assert actions(proxy) == [*made, *looked, "ScheduleKeyDeletion"]
    orphan = json.loads(proxy.bodies[-1])["KeyId"]
    assert kms.describe_key(orphan).state == "pending deletion"


LATE = ("status", 503, {}, "<html>a proxy gave up waiting</html>")


def actions(proxy: FaultProxy) -> list[str]:
    return [seen["x-amz-target"].rpartition(".")[2] for seen in proxy.headers]


@pytest.mark.nightly
def test_calls_that_change_something_are_made_once(
    moto: AwsServer, faults: Callable[..., FaultProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """boto3 would make them again after a 503 or a lost answer, though the first may have been carried out."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "4")
    region = "eu-south-1"  # one that no other test uses
    proxy = faults(moto.port)
    kms = AwsKms(region=region, endpoint=proxy.url)
    for lost in (LATE, "reset"):
        proxy.next = ["pass", lost]
        proxy.forget()
        with pytest.raises(errors.KmsUnavailableError) as raised:
            kms.create_key("setup-once")
        assert actions(proxy) == ["DescribeKey", "CreateKey"]
        assert "'Apache Iceberg table encryption: alias/setup-once'" in raised.value.hint
    assert len(moto.boto("kms", region).list_keys()["Keys"]) == 1, "the one whose answer was lost"

    made = kms.create_key("setup-once")
    for lost in (LATE, "reset"):
        proxy.next = ["pass", lost]
        proxy.forget()
        with pytest.raises(errors.KmsUnavailableError) as raised:
            kms.rotate_key(made.key_id)
        assert actions(proxy) == ["DescribeKey", "RotateKeyOnDemand"]
        assert "describe_key" in raised.value.hint
    assert kms.describe_key(made.key_id).versions == 2
    proxy.next = [LATE]
    assert kms.describe_key(made.key_id), "what changes nothing is asked again"


def test_an_alias_whose_answer_was_lost(
    kms: AwsKms, moto: AwsServer, faults: Callable[..., FaultProxy]
) -> None:
    proxy = faults(moto.port)
    proxy.next = ["pass", "pass", "reset"]
    made = AwsKms(region=REGION, endpoint=proxy.url).create_key("setup-alias-lost")
    assert actions(proxy) == ["DescribeKey", "CreateKey", "CreateAlias", "DescribeKey"]
    assert kms.describe_key(made.key_id).state == "enabled"


def test_a_key_that_an_alias_may_lead_to_is_kept(
    moto: AwsServer, faults: Callable[..., FaultProxy]
) -> None:
    """The answer was lost, and this login may not look whether the alias is there."""
    denied = {"__type": "AccessDeniedException", "message": "no"}
    proxy = faults(moto.port)
    for number, lost in enumerate((LATE, "reset")):
        proxy.next = ["pass", "pass", lost, ("status", 400, {}, json.dumps(denied))]
        proxy.forget()
        with pytest.raises(errors.KmsUnavailableError) as raised:
            AwsKms(region=REGION, endpoint=proxy.url).create_key(f"setup-kept-{number}")
        assert actions(proxy) == ["DescribeKey", "CreateKey", "CreateAlias", "DescribeKey"]
        assert "look for one described as" in raised.value.hint


def test_list(kms: AwsKms, moto: AwsServer) -> None:
    named = kms.create_key("setup-listed")
    bare = moto.create_key()
    moto.boto("kms").disable_key(KeyId=bare)
    found = {info.key_id: info for info in kms.list_keys()}
    assert found[named.key_id].detail["arn"] == named.detail["arn"]
    assert found[bare].state == "disabled"


@pytest.mark.nightly
def test_list_on_ministack(ministack: AwsServer) -> None:
    """It tells what a key is for, as moto does not."""
    signing = ministack.create_key(KeyUsage="SIGN_VERIFY", KeySpec="RSA_2048")
    symmetric = ministack.create_key()
    found = {info.key_id for info in AwsKms(region=REGION, endpoint=ministack.url).list_keys()}
    assert symmetric in found
    assert signing not in found


def test_keys_that_may_not_be_described_are_listed(
    moto: AwsServer, faults: Callable[..., FaultProxy]
) -> None:
    proxy = faults(moto.port)
    key = moto.create_key("eu-north-1")  # a region that no other test uses
    refusal = ("status", 400, {}, json.dumps({"__type": "AccessDeniedException", "message": "no"}))
    proxy.next = ["pass", "pass", refusal]
    (info,) = AwsKms(region="eu-north-1", endpoint=proxy.url).list_keys()
    assert (info.key_id, info.state) == (key, "not shown: this login may not describe it")
    assert info.detail["arn"].endswith(key)


def test_describe(kms: AwsKms, ministack: AwsServer) -> None:
    made = kms.create_key("setup-described", multi_region=True)
    info = kms.describe_key(made.key_id)
    assert info.detail["aliases"] == "alias/setup-described"
    assert info.detail["multi-Region"] == "primary"
    assert "/mrk-" in info.detail["arn"]
    there = AwsKms(region=REGION, endpoint=ministack.url)
    key = ministack.create_key()
    ministack.boto("kms").schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    info = there.describe_key(key)
    assert info.state == "pending deletion"
    assert info.detail["deletion"]
    assert (info.version, info.versions) == ("current", None)  # ministack does not list rotations


def policy(text: str) -> dict[str, list[dict[str, object]]]:
    comment, _, rest = text.partition("\n")
    assert comment.startswith("# ")
    return dict(json.loads(rest))


def test_policy_is_the_least(kms: AwsKms) -> None:
    made = kms.create_key("setup-policy")
    arn = f"arn:aws:kms:eu-west-1:{ACCOUNT}:key/mrk-1"
    (statement,) = policy(kms.driver_policy([made.key_id, arn]))["Statement"]
    assert statement["Action"] == ["kms:Encrypt", "kms:Decrypt"]
    assert statement["Resource"] == [made.detail["arn"], arn]
    assert statement["Effect"] == "Allow"
    assert "Condition" not in statement


def test_policy_binds_the_context() -> None:
    kms = AwsKms(encryption_context={"table": "sales"})
    (statement,) = policy(kms.driver_policy([f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0"]))["Statement"]
    assert statement["Condition"] == {"StringEquals": {"kms:EncryptionContext:table": "sales"}}


def test_policy_asks_for_some_table() -> None:
    """Which one, no policy can know."""
    kms = AwsKms(encryption_context={"lake": "sales", "table": "{table-uuid}"})
    (statement,) = policy(kms.driver_policy([f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0"]))["Statement"]
    assert statement["Condition"] == {
        "StringEquals": {"kms:EncryptionContext:lake": "sales"},
        "Null": {"kms:EncryptionContext:table": "false"},
    }


def test_policy_for_no_keys(kms: AwsKms) -> None:
    with pytest.raises(errors.ConfigurationError, match="no keys"):
        kms.driver_policy([])
    with pytest.raises(errors.KeyNotFoundError, match="alias/none"):
        kms.driver_policy(["alias/none"])


def test_properties() -> None:
    kms = AwsKms(
        "eu-west-1", "https://vpce-1.kms.eu-west-1.vpce.amazonaws.com", {"b": "2", "a": "1"}
    )
    assert kms.properties() == {
        "encryption.kms-type": "aws",
        "encryption.kms.aws.region": "eu-west-1",
        "encryption.kms.aws.endpoint": "https://vpce-1.kms.eu-west-1.vpce.amazonaws.com",
        "encryption.kms.aws.encryption-context.a": "1",
        "encryption.kms.aws.encryption-context.b": "2",
    }
    assert AwsKms(profile="admin").properties() == {"encryption.kms-type": "aws"}


@pytest.mark.parametrize(
    "arguments", [{"region": ""}, {"endpoint": " "}, {"encryption_context": {"a": ""}}]
)
def test_empty_arguments(arguments: dict[str, str]) -> None:
    with pytest.raises(errors.ConfigurationError, match="empty"):
        AwsKms(**arguments)  # type: ignore[arg-type]


REFUSED = {
    "AccessDeniedException": (errors.AccessDeniedError, "kms:CreateKey"),
    "ExpiredTokenException": (errors.LoginFailedError, "log in again"),
    "InvalidSignatureException": (errors.LoginFailedError, "clock"),
    "ThrottlingException": (errors.KmsUnavailableError, "later"),
    "ConflictException": (errors.KmsUnavailableError, "later"),
    "LimitExceededException": (errors.NotSupportedError, "quotas"),
    "UnsupportedOperationException": (errors.NotSupportedError, "symmetric"),
    "KMSInvalidStateException": (errors.IcebergCryptoError, "describe-custom-key-stores"),
    "NotFoundException": (errors.KeyNotFoundError, "region"),
    "SomethingNew": (errors.IcebergCryptoError, "API reference"),
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals(moto: AwsServer, faults: Callable[..., FaultProxy], code: str) -> None:
    kind, hint = REFUSED[code]
    proxy = faults(moto.port)
    echo = f"x-amz-security-token:{SECRET}" if code in ("InvalidSignatureException",) else "said so"
    proxy.mode = ("status", 400, {}, json.dumps({"__type": code, "message": echo}))
    with pytest.raises(errors.IcebergCryptoError) as caught:
        AwsKms(region=REGION, endpoint=proxy.url).rotate_key("alias/orders")
    error = caught.value
    assert type(error) is kind
    assert proxy.url in error.message
    assert "'alias/orders'" in error.message
    assert hint in error.hint
    assert SECRET not in str(error)


def test_no_server() -> None:
    with pytest.raises(errors.KmsUnavailableError, match=r"http://127.0.0.1:1"):
        AwsKms(region=REGION, endpoint="http://127.0.0.1:1").list_keys()


def test_no_login(moto: AwsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(errors.LoginFailedError, match="there is no login"):
        AwsKms(region=REGION, endpoint=moto.url).list_keys()


def test_credentials_that_no_header_holds(kms: AwsKms, monkeypatch: pytest.MonkeyPatch) -> None:
    """http.client's error shows them."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", f"{SECRET}\n")
    for call in (kms.list_keys, lambda: kms.create_key("setup-header")):
        with pytest.raises(errors.LoginFailedError, match="is not a valid header value") as caught:
            call()
        assert "line break" in caught.value.hint
        assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_no_region_and_no_profile(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match="region"):
        AwsKms().list_keys()
    with pytest.raises(errors.ConfigurationError, match="nobody"):
        AwsKms(region=REGION, profile="nobody").list_keys()


@pytest.mark.parametrize("host", ["kms.example.com", "10.0.0.1:80", "127.0.0.1.example.com"])
def test_plain_http_stays_on_this_machine(host: str) -> None:
    with pytest.raises(errors.ConfigurationError, match="would send keys to .* in plaintext"):
        AwsKms(region=REGION, endpoint=f"http://{host}")
    assert AwsKms(region=REGION, endpoint=f"https://{host}").endpoint
    for here in ("localhost", "127.0.0.1", "[::1]:8080"):
        assert AwsKms(region=REGION, endpoint=f"http://{here}").endpoint
