"""Master keys in Google Cloud KMS."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    KeyNotFoundError,
    KmsUnavailableError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms import _address
from pyspark_iceberg_crypto.kms._base import ENABLED, KeyInfo, Kms
from pyspark_iceberg_crypto.kms._extras import load
from pyspark_iceberg_crypto.kms._settings import AnyPath, absolute, setting
from pyspark_iceberg_crypto.kms.gcp._errors import ERRORS, FILE_ERRORS
from pyspark_iceberg_crypto.kms.gcp._keys import GcpKeys

DEFAULT_ENDPOINT = "https://cloudkms.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/cloudkms"
_TIMEOUT_S = 30.0
_GENERATION_S = 120.0
_PERMISSIONS = (
    "cloudkms.cryptoKeyVersions.useToEncrypt",
    "cloudkms.cryptoKeyVersions.useToDecrypt",
)
_ROLE = "icebergCryptoWrapper"
_PART = r"[A-Za-z0-9_-]{1,63}"
_RING = rf"projects/(?P<project>[A-Za-z0-9.:_-]+)/locations/(?P<location>[A-Za-z0-9-]+)/keyRings/(?P<ring>{_PART})"
_KEY = re.compile(
    rf"(?P<given>(?P<name>{_RING}/cryptoKeys/(?P<key>{_PART}))(/cryptoKeyVersions/[1-9][0-9]*)?)"
)
_ENDPOINT = re.compile(r"https?://(\[::1]|[A-Za-z0-9.-]+)(:\d+)?/?")
_STATES = {"ENABLED": ENABLED, "DESTROY_SCHEDULED": "pending deletion"}


@dataclass(frozen=True)
class GcpKms(Kms):
    """Google Cloud KMS: symmetric keys, each named by its full resource name.

    A table's ``encryption.key-id`` is ``projects/P/locations/L/keyRings/R/cryptoKeys/K``.

    Raises:
        ConfigurationError: a value cannot be.
    """

    kms_type: ClassVar[str] = "gcp"
    extra: ClassVar[str] = "gcp"
    packages: ClassVar[tuple[str, ...]] = (
        "com.google.auth:google-auth-library-oauth2-http:1.50.0",
    )

    credentials_file: AnyPath | None = setting(
        "A JSON file with credentials, at this path on every machine; without it, the "
        "application default credentials.",
        text=absolute,
    )
    endpoint: str | None = setting(
        "An address other than Google's own, such as https://cloudkms.europe-west3.rep.googleapis.com.",
        implied=DEFAULT_ENDPOINT,
    )
    additional_authenticated_data: str | None = setting(
        '"key-id" has Cloud KMS authenticate the key\'s name with each wrapped key, "table-'
        'uuid" the table\'s UUID; Iceberg\'s own client then cannot read the tables. "none" is '
        "what Iceberg does.",
        implied="none",
    )
    project: str | None = setting(
        "The project of the keys; for list_keys and short names.", local=True
    )
    location: str | None = setting(
        "The location of the keys, such as europe-west3; for list_keys and short names.", local=True
    )
    key_ring: str | None = setting(
        "The key ring of the keys; for list_keys and short names.", local=True
    )

    def __post_init__(self) -> None:
        if self.additional_authenticated_data not in (None, "none", "key-id", "table-uuid"):
            raise ConfigurationError(
                f"additional_authenticated_data cannot be {self.additional_authenticated_data!r}",
                'it is "key-id", "table-uuid" or "none"',
            )
        if self.credentials_file == "":
            raise ConfigurationError("credentials_file is empty", "leave it out")
        if self.endpoint is not None and not (
            _ENDPOINT.fullmatch(self.endpoint)
            and _address.is_encrypted(_address.split(self.endpoint))
        ):
            raise ConfigurationError(
                f"{self.endpoint!r} is not an address of Cloud KMS",
                f"give https:// and a host, such as {DEFAULT_ENDPOINT}, or leave it out",
            )

    def create_key(
        self, name: str, *, create_key_ring: bool = False, protection_level: str = "software"
    ) -> KeyInfo:
        """Make a new symmetric key. A key that exists is never overwritten, and no key can ever be deleted.

        Args:
            name: the key's full name; or its last part, where project, location and key_ring are set.
            create_key_ring: make the key ring, too, if it does not exist. It can never be deleted.
            protection_level: where the key is kept: software or hsm.
        """
        key = self._key(name)
        if protection_level not in ("software", "hsm"):
            raise ConfigurationError(
                f"protection_level cannot be {protection_level!r}", 'it is "software" or "hsm"'
            )
        kms = load("google.cloud.kms_v1", self.extra)
        ring = key["name"].partition("/cryptoKeys/")[0]
        if create_key_ring:
            self._create_ring(key, ring)
        made = kms.CryptoKey(
            purpose=kms.CryptoKey.CryptoKeyPurpose.ENCRYPT_DECRYPT,
            version_template=kms.CryptoKeyVersionTemplate(
                algorithm=kms.CryptoKeyVersion.CryptoKeyVersionAlgorithm.GOOGLE_SYMMETRIC_ENCRYPTION,
                protection_level=kms.ProtectionLevel[protection_level.upper()],
            ),
        )
        try:
            self._ask(
                "create_crypto_key", ring, parent=ring, crypto_key_id=key["key"], crypto_key=made
            )
        except KeyNotFoundError as error:
            raise ConfigurationError(
                f"{self._name} has no key ring '{ring}'",
                "create it with create_key_ring=True, or check project, location and key ring",
            ) from error
        return self.describe_key(key["name"])

    def list_keys(self) -> list[KeyInfo]:
        """List the symmetric keys of the key ring."""
        if not (self.project and self.location and self.key_ring):
            raise ConfigurationError(
                "which keys to list? Cloud KMS lists those of one key ring",
                "set project, location and key_ring: GcpKms(project=..., location=..., key_ring=...)",
            )
        ring = f"projects/{self.project}/locations/{self.location}/keyRings/{self.key_ring}"
        try:
            found = self._ask("list_crypto_keys", ring, listed=True, parent=ring)
        except KeyNotFoundError as error:
            raise ConfigurationError(
                f"{self._name} has no key ring '{ring}'", "check project, location and key_ring"
            ) from error
        return [_info(key) for key in found if key.purpose.name == "ENCRYPT_DECRYPT"]

    def describe_key(self, key_id: str) -> KeyInfo:
        """Describe a key, and say whether it can be used."""
        name = self._key(key_id)["name"]
        key = self._ask("get_crypto_key", name, name=name)
        versions = self._ask("list_crypto_key_versions", name, listed=True, parent=name)
        return _info(key, len(versions))

    def rotate_key(self, key_id: str) -> KeyInfo:
        """Add a version to a key and make it the primary one. What older versions wrapped still unwraps.

        If the new version cannot be made primary, it stays, and can be made primary later.
        """
        name = self._key(key_id)["name"]
        purpose = self._ask("get_crypto_key", name, name=name).purpose.name
        if purpose != "ENCRYPT_DECRYPT":
            raise NotSupportedError(
                f"{self._name}: key '{name}' has the purpose {purpose}",
                "use a symmetric key, with the purpose ENCRYPT_DECRYPT",
            )
        version = self._ask("create_crypto_key_version", name, parent=name, crypto_key_version={})
        self._wait_for(version)
        number = version.name.rpartition("/")[2]
        self._ask(
            "update_crypto_key_primary_version", name, name=name, crypto_key_version_id=number
        )
        return self.describe_key(name)

    def driver_policy(self, key_ids: Sequence[str]) -> str:
        """Return gcloud commands that let an account use these keys, and do nothing else.

        Raises:
            ConfigurationError: a name is no key's name.
        """
        keys = [self._key(key_id) for key_id in key_ids]
        lines = [
            "# Google Cloud: lets the account that Spark logs in with wrap and unwrap under these keys, and no more.",
            "# For an account that only reads tables leave useToEncrypt out.",
            "ACCOUNT=serviceAccount:SPARK@PROJECT.iam.gserviceaccount.com",
        ]
        for project in dict.fromkeys(key["project"] for key in keys):
            lines.append(
                f"gcloud iam roles create {_ROLE} --project={project}"
                f" --title='Wrap and unwrap Iceberg table keys' --permissions={','.join(_PERMISSIONS)}"
            )
        for key in keys:
            lines.append(
                f"gcloud kms keys add-iam-policy-binding {key['key']} --project={key['project']}"
                f" --location={key['location']} --keyring={key['ring']}"
                f' --member="$ACCOUNT" --role=projects/{key["project"]}/roles/{_ROLE}'
            )
        return "\n".join(lines) + "\n"

    def _open(self, call_seconds: float) -> GcpKeys:
        return GcpKeys(self, call_seconds)

    @property
    def binds_table(self) -> bool:
        """See `Kms.binds_table`."""
        return self.additional_authenticated_data == "table-uuid"

    @property
    def _name(self) -> str:
        return f"Google Cloud KMS at {self.endpoint or DEFAULT_ENDPOINT}"

    def _key(self, key_id: str) -> dict[str, str]:
        full = key_id
        if self.project and self.location and self.key_ring and re.fullmatch(_PART, key_id):
            full = f"projects/{self.project}/locations/{self.location}/keyRings/{self.key_ring}/cryptoKeys/{key_id}"
        found = _KEY.fullmatch(full)
        if not found:
            raise ConfigurationError(
                f"{key_id!r} is not the name of a key in Google Cloud KMS",
                "give projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY;"
                " KEY alone is enough with project, location and key_ring set",
            )
        return found.groupdict()

    def _create_ring(self, key: dict[str, str], ring: str) -> None:
        parent = f"projects/{key['project']}/locations/{key['location']}"
        try:
            self._ask("get_key_ring", ring, name=ring)
        except KeyNotFoundError:
            self._ask("create_key_ring", ring, parent=parent, key_ring_id=key["ring"], key_ring={})

    def _wait_for(self, version: Any) -> None:
        """Wait until a version of a hardware key has been generated; one of a software key exists at once."""
        until = time.monotonic() + _GENERATION_S
        while version.state.name == "PENDING_GENERATION":
            if time.monotonic() > until:
                raise KmsUnavailableError(
                    f"{self._name} has not finished '{version.name}' in {_GENERATION_S:.0f} s",
                    "make it the primary version later: gcloud kms keys update --primary-version",
                )
            time.sleep(1)
            version = self._ask("get_crypto_key_version", version.name, name=version.name)

    def _ask(self, method: str, subject: str, *, listed: bool = False, **request: Any) -> Any:
        """Call a method of Google's client; with `listed`, read all pages of the answer."""
        what = f"{self._name} cannot be asked for '{subject}'"
        with ERRORS.typed(what, kms=self._name, subject=subject):
            # No retry: an error is shown at once, and rotate_key cannot add two versions.
            answer = getattr(self._client(), method)(
                request=request, retry=None, timeout=_TIMEOUT_S
            )
            return list(answer) if listed else answer

    def _client(self) -> Any:
        kms = load("google.cloud.kms_v1", self.extra)
        return kms.KeyManagementServiceClient(
            credentials=self._credentials(),
            transport="rest",
            client_options={"api_endpoint": (self.endpoint or DEFAULT_ENDPOINT).rstrip("/")},
        )

    def _credentials(self) -> Any:
        if self.credentials_file is None:
            return None
        auth = load("google.auth", self.extra)
        file = os.fspath(self.credentials_file)
        with FILE_ERRORS.typed(f"file {file} has no credentials"), warnings.catch_warnings():
            # Deprecated because of files from strangers. This one is the user's own, of any type.
            warnings.simplefilter("ignore", DeprecationWarning)
            return auth.load_credentials_from_file(file, scopes=[_SCOPE])[0]


def _info(key: Any, versions: int | None = None) -> KeyInfo:
    template, primary = key.version_template, key.primary
    state = primary.state.name if primary.name else "no primary version"
    return KeyInfo(
        key_id=key.name,
        state=_STATES.get(state, state.lower().replace("_", " ")),
        algorithm=template.algorithm.name,
        version=primary.name.rpartition("/")[2],
        versions=versions,
        created=key.create_time.isoformat() if key.create_time else None,
        detail={"protection_level": template.protection_level.name, "purpose": key.purpose.name},
    )
