"""Master keys in AWS KMS."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.kms import _address
from pyspark_iceberg_crypto.kms._base import ENABLED, KeyInfo, Kms
from pyspark_iceberg_crypto.kms._extras import load
from pyspark_iceberg_crypto.kms._settings import setting
from pyspark_iceberg_crypto.kms.aws._errors import ERRORS
from pyspark_iceberg_crypto.kms.aws._keys import TABLE_UUID, AwsKeys

_STATES = {"Enabled": ENABLED, "Disabled": "disabled", "PendingDeletion": "pending deletion"}
_KEY_ARN = re.compile(r"arn:[^:]+:kms:[^:]+:[0-9]+:key/.+")
_DESCRIBED = "Apache Iceberg table encryption: "
_PLACEHOLDER = re.compile(r"\{[A-Za-z_-]*}")
_ALIAS = re.compile(r"alias/[a-zA-Z0-9/_-]{1,250}")


@dataclass(frozen=True)
class AwsKms(Kms):
    """AWS Key Management Service.

    Neither Spark nor the set-up takes credentials here: both use AWS's own provider chain (environment,
    profile, web identity, the host's role).

    Raises:
        ConfigurationError: an argument is empty, or the endpoint is http of another machine.
    """

    kms_type: ClassVar[str] = "aws"
    extra: ClassVar[str] = "aws"
    packages: ClassVar[tuple[str, ...]] = ("org.apache.iceberg:iceberg-aws-bundle:1.12.0",)

    region: str | None = setting(
        "The region that the keys are in; default: AWS_REGION's, or the profile's.",
        stock="client.region",
    )
    endpoint: str | None = setting(
        "A URL instead of the region's public one, such as a VPC endpoint's. Plain http is "
        "for this machine only, because requests contain keys.",
        stock="kms.endpoint",
    )
    encryption_context: Mapping[str, str] = setting(
        "Names and values that every wrapped key is bound to. Only clients with the same "
        'context can then unwrap: stock Iceberg and other engines cannot. The value "{table-'
        'uuid}" stands for the UUID of the table whose key it is.',
        dict,
    )
    profile: str | None = setting(
        "The profile of ~/.aws that sets keys up; Spark does not use it.", local=True
    )

    def __post_init__(self) -> None:
        for name in ("region", "endpoint", "profile"):
            value = getattr(self, name)
            if value is not None and not value.strip():
                raise errors.ConfigurationError(f"AwsKms's {name} is empty", "leave it out")
        url = _address.split(self.endpoint or "")  # anything but a URL is left to boto3 and Spark
        if url.scheme == "http" and not _address.is_encrypted(url):
            raise errors.ConfigurationError(
                f"AwsKms's endpoint is http, which would send keys to {url.hostname} in plaintext",
                "use https; http is for a KMS on this machine only (localhost, 127.0.0.1, [::1])",
            )
        for name, value in self.encryption_context.items():
            if not name.strip() or not value.strip():
                raise errors.ConfigurationError(
                    f"the encryption context has an empty name or value: {name!r}: {value!r}",
                    "encryption_context={'name': 'value'}",
                )
            if value != TABLE_UUID and _PLACEHOLDER.search(value):  # it would be one for all tables
                raise errors.ConfigurationError(
                    f"the encryption context's {name!r} cannot be {value!r}",
                    f"{TABLE_UUID} is the only placeholder, and must be the whole value",
                )

    def create_key(
        self, name: str, *, multi_region: bool = False, rotation_days: int | None = None
    ) -> KeyInfo:
        """Make a symmetric key and an alias for it. An alias that exists is never pointed at another key.

        Args:
            name: the alias, with or without "alias/" before it.
            multi_region: make a multi-Region key, which can be replicated to other regions later.
            rotation_days: have AWS rotate the key every 90 to 2560 days.
        """
        alias = name if name.startswith("alias/") else f"alias/{name}"
        if not _ALIAS.fullmatch(alias) or alias.startswith("alias/aws/"):
            raise errors.ConfigurationError(
                f"{name!r} cannot be an alias of AWS KMS",
                "use letters, digits, '/', '_' and '-'; alias/aws/ is AWS's own",
            )
        with self._client(f"create key {alias!r}") as client:
            if _exists(client, alias):
                raise errors.ConfigurationError(
                    f"AWS KMS already has a key {alias!r}", "choose another name, or use that key"
                )
            with self._client(
                f"create key {alias!r}",
                once=f"a key may have been made without its alias: look for one described as '{_DESCRIBED}{alias}'"
                " before you try again",
            ) as once:
                made = once.create_key(
                    Description=f"{_DESCRIBED}{alias}", MultiRegion=multi_region
                )["KeyMetadata"]
                try:
                    if rotation_days is not None:
                        client.enable_key_rotation(
                            KeyId=made["KeyId"], RotationPeriodInDays=rotation_days
                        )
                    once.create_alias(AliasName=alias, TargetKeyId=made["KeyId"])
                except Exception as error:
                    if not _leads_to(client, alias, made["KeyId"]):
                        if _is_refusal(client, error):
                            # Nobody knows of this key yet. Seven days is the shortest time that AWS allows.
                            with suppress(Exception):
                                client.schedule_key_deletion(
                                    KeyId=made["KeyId"], PendingWindowInDays=7
                                )
                        raise
            return _info(alias, made, [alias], rotations=0)

    def list_keys(self) -> list[KeyInfo]:
        """List the account's own keys for encryption in the region, by an alias where they have one."""
        with self._client("list keys") as client:
            aliases: dict[str, list[str]] = {}
            for page in client.get_paginator("list_aliases").paginate():
                for alias in page["Aliases"]:
                    aliases.setdefault(alias.get("TargetKeyId", ""), []).append(alias["AliasName"])
            found = []
            for page in client.get_paginator("list_keys").paginate():
                for key in page["Keys"]:
                    names = sorted(aliases.get(key["KeyId"], []))
                    metadata = _described(client, key["KeyId"])
                    if metadata is None:
                        found.append(_hidden(key, names))
                    elif (
                        metadata.get("KeyManager") != "AWS"
                        and metadata.get("KeyUsage", "ENCRYPT_DECRYPT") == "ENCRYPT_DECRYPT"
                    ):
                        found.append(_info(names[0] if names else key["KeyId"], metadata, names))
            return sorted(found, key=lambda info: info.key_id)

    def describe_key(self, key_id: str) -> KeyInfo:
        """Describe a key, and say whether it can be used.

        Args:
            key_id: a key's id or ARN, alias/NAME, or an alias's ARN.
        """
        with self._client(f"describe key {key_id!r}") as client:
            metadata = client.describe_key(KeyId=key_id)["KeyMetadata"]
            return _info(
                key_id,
                metadata,
                _aliases(client, metadata["KeyId"]),
                _rotations(client, metadata["KeyId"]),
            )

    def rotate_key(self, key_id: str) -> KeyInfo:
        """Give a key new material, under the same id. What older material wrapped still unwraps.

        AWS does it in the background: the version in the answer may still be the old one.
        """
        with self._client(f"rotate key {key_id!r}") as client:
            # RotateKeyOnDemand takes no alias.
            metadata = client.describe_key(KeyId=key_id)["KeyMetadata"]
            with self._client(
                f"rotate key {key_id!r}",
                once="it may have been rotated anyway: see describe_key before you try again",
            ) as once:
                once.rotate_key_on_demand(KeyId=metadata["KeyId"])
        return self.describe_key(key_id)

    def driver_policy(self, key_ids: Sequence[str]) -> str:
        """Return the IAM policy that Spark needs for these keys: kms:Encrypt and kms:Decrypt, and no more.

        IAM knows keys by their ARNs only: other ids are looked up, which needs boto3 and kms:DescribeKey.

        Raises:
            ConfigurationError: no keys are given.
            KeyNotFoundError: there is no such key.
        """
        if not key_ids or isinstance(key_ids, str):
            raise errors.ConfigurationError("no keys are given", "driver_policy(['alias/sales'])")
        arns = [
            key if _KEY_ARN.fullmatch(key) else self.describe_key(key).detail["arn"]
            for key in key_ids
        ]
        statement: dict[str, Any] = {
            "Sid": "IcebergTableKeys",
            "Effect": "Allow",
            "Action": ["kms:Encrypt", "kms:Decrypt"],
            "Resource": arns,
        }
        if self.encryption_context:
            statement["Condition"] = _condition(self.encryption_context)
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        return (
            "# IAM policy for the role that Spark's driver and executors run as; paste it without this line\n"
            + json.dumps(policy, indent=2)
            + "\n"
        )

    @contextmanager
    def _client(self, what: str, once: str = "") -> Iterator[Any]:
        """A boto3 client; what it raises comes out as our errors.

        With `once` it asks once, for calls that must not be made twice; that is then the hint of an error that
        does not say whether the call was carried out.
        """
        load("boto3", self.extra)
        config = load("botocore.config", self.extra).Config(
            retries={"total_max_attempts": 1} if once else None
        )
        with ERRORS.typed(f"{self._name} could not {what}", once=once):
            yield self._connect(config)

    def _connect(self, config: Any) -> Any:
        """Return a boto3 client."""
        boto3 = load("boto3", self.extra)
        session = boto3.Session(profile_name=self.profile, region_name=self.region)
        return session.client("kms", endpoint_url=self.endpoint, config=config)

    def _open(self, call_seconds: float) -> AwsKeys:
        return AwsKeys(self, call_seconds)

    @property
    def binds_table(self) -> bool:
        """See `Kms.binds_table`."""
        return TABLE_UUID in self.encryption_context.values()

    @property
    def _name(self) -> str:
        if self.endpoint:
            return f"AWS KMS at {self.endpoint}"
        return f"AWS KMS in {self.region}" if self.region else "AWS KMS"


def _exists(client: Any, alias: str) -> bool:
    try:
        client.describe_key(KeyId=alias)
    except client.exceptions.NotFoundException:
        return False
    return True


def _leads_to(client: Any, alias: str, key_id: str) -> bool:
    """Return whether an alias points at a key: the call may have been carried out although its answer was lost."""
    with suppress(Exception):
        return bool(client.describe_key(KeyId=alias)["KeyMetadata"]["KeyId"] == key_id)
    return False


def _is_refusal(client: Any, error: Any) -> bool:
    """Return whether AWS answered that it has not done something: without an answer it may be done."""
    return (
        isinstance(error, client.exceptions.ClientError)
        and error.response["ResponseMetadata"]["HTTPStatusCode"] < 500
    )


def _described(client: Any, key_id: str) -> dict[str, Any] | None:
    """Describe a key; None if this login may not."""
    try:
        return dict(client.describe_key(KeyId=key_id)["KeyMetadata"])
    except client.exceptions.ClientError as error:
        if error.response["Error"].get("Code") == "AccessDeniedException":
            return None
        raise


def _aliases(client: Any, key_id: str) -> list[str]:
    """List a key's aliases; none if this login may not, or if the key is another account's."""
    try:
        return sorted(alias["AliasName"] for alias in client.list_aliases(KeyId=key_id)["Aliases"])
    except client.exceptions.ClientError:
        return []


def _rotations(client: Any, key_id: str) -> int | None:
    """Count a key's rotations; None if this login may not, or if the server cannot."""
    try:
        pages = client.get_paginator("list_key_rotations").paginate(KeyId=key_id)
        return sum(len(page.get("Rotations", [])) for page in pages)
    except client.exceptions.ClientError:
        return None


def _info(
    key_id: str, metadata: Mapping[str, Any], aliases: Sequence[str], rotations: int | None = None
) -> KeyInfo:
    created = metadata.get("CreationDate")
    detail = {"arn": str(metadata["Arn"])}
    if aliases:
        detail["aliases"] = ", ".join(aliases)
    if metadata.get("MultiRegion"):
        detail["multi-Region"] = str(
            metadata.get("MultiRegionConfiguration", {}).get("MultiRegionKeyType", "yes")
        ).lower()
    if metadata.get("DeletionDate"):
        detail["deletion"] = metadata["DeletionDate"].isoformat()
    return KeyInfo(
        key_id=key_id,
        state=_STATES.get(metadata["KeyState"], str(metadata["KeyState"])),
        algorithm=str(metadata.get("KeySpec", "")),
        version="current" if rotations is None else str(rotations + 1),
        versions=None if rotations is None else rotations + 1,
        created=created.isoformat() if created else None,
        detail=detail,
    )


def _hidden(key: Mapping[str, str], aliases: Sequence[str]) -> KeyInfo:
    return KeyInfo(
        key_id=aliases[0] if aliases else key["KeyId"],
        state="not shown: this login may not describe it",
        algorithm="",
        version="current",
        detail={"arn": key["KeyArn"]},
    )


def _condition(context: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Make a policy's condition for an encryption context; any table's UUID will do, but there must be one."""
    fixed, present = {}, {}
    for name, value in sorted(context.items()):
        key = f"kms:EncryptionContext:{name}"
        if value == TABLE_UUID:
            present[key] = "false"
        else:
            fixed[key] = value
    found = {"StringEquals": fixed, "Null": present}
    return {operator: keys for operator, keys in found.items() if keys}
