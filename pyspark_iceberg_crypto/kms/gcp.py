"""Master keys in Google Cloud KMS."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pyspark_iceberg_crypto import _jvm
from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    IcebergCryptoError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms._base import ENABLED, KeyInfo, Kms
from pyspark_iceberg_crypto.kms._extras import load
from pyspark_iceberg_crypto.kms._secrets import headers_unshown

T = TypeVar("T")

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
    rf"(?P<name>{_RING}/cryptoKeys/(?P<key>{_PART}))(/cryptoKeyVersions/[1-9][0-9]*)?"
)
_ENDPOINT = re.compile(
    r"https://[A-Za-z0-9.-]+(:\d+)?/?|http://(127\.0\.0\.1|localhost|\[::1])(:\d+)?/?"
)
_LOGIN_HINT = "log in again or replace the credentials file; check this host's clock too"
_STATES = {"ENABLED": ENABLED, "DESTROY_SCHEDULED": "pending deletion"}


@dataclass(frozen=True)
class GcpKms(Kms):
    """Google Cloud KMS: symmetric keys, each named by its full resource name.

    A table's ``encryption.key-id`` is ``projects/P/locations/L/keyRings/R/cryptoKeys/K``.

    Attributes:
        credentials_file: a JSON file with credentials, at this path on every machine; without it, the
            application default credentials.
        endpoint: another address than Google's own, such as https://cloudkms.europe-west3.rep.googleapis.com.
        additional_authenticated_data: "key-id" has Cloud KMS authenticate the key's name with each wrapped
            key, "table-uuid" the table's UUID; Iceberg's own client then cannot read the tables. "none" is what
            Iceberg does.
        project: of the keys, for list_keys and for short names.
        location: of the keys, such as europe-west3, for list_keys and for short names.
        key_ring: of the keys, for list_keys and for short names.

    Raises:
        ConfigurationError: a value cannot be.
    """

    extra: ClassVar[str] = "gcp"
    packages: ClassVar[tuple[str, ...]] = (
        "com.google.auth:google-auth-library-oauth2-http:1.50.0",
    )
    defaults: ClassVar[Mapping[str, str]] = {
        "endpoint": DEFAULT_ENDPOINT,
        "additional-authenticated-data": "none",
    }

    credentials_file: str | os.PathLike[str] | None = None
    endpoint: str | None = None
    additional_authenticated_data: str | None = None
    project: str | None = None
    location: str | None = None
    key_ring: str | None = None

    def __post_init__(self) -> None:
        if self.additional_authenticated_data not in (None, "none", "key-id", "table-uuid"):
            raise ConfigurationError(
                f"additional_authenticated_data cannot be {self.additional_authenticated_data!r}",
                'it is "key-id", "table-uuid" or "none"',
            )
        if self.endpoint is not None and not _ENDPOINT.fullmatch(self.endpoint):
            raise ConfigurationError(
                f"{self.endpoint!r} is not an address of Cloud KMS",
                f"give https:// and a host, such as {DEFAULT_ENDPOINT}, or leave it out",
            )

    def properties(self) -> dict[str, str]:
        """Return the catalog properties that name this KMS. None of them is a secret."""
        prefix = "encryption.kms.gcp"
        found = {"encryption.kms-type": "gcp"}
        if self.credentials_file is not None:
            found[f"{prefix}.credentials-file"] = str(Path(self.credentials_file).absolute())
        if self.endpoint is not None:
            found[f"{prefix}.endpoint"] = self.endpoint
        if self.additional_authenticated_data is not None:
            found[f"{prefix}.additional-authenticated-data"] = self.additional_authenticated_data
        return found

    def create_key(
        self, name: str, *, create_key_ring: bool = False, protection_level: str = "software"
    ) -> KeyInfo:
        """Make a new symmetric key. A key that exists is never overwritten, and none can ever be deleted.

        Args:
            name: the key's full name; or its last part, where project, location and key_ring are set.
            create_key_ring: make the key ring too if there is none; it cannot be deleted either.
            protection_level: "software" or "hsm".

        Raises:
            ConfigurationError: the name is wrong or taken, there is no such key ring, or the client library
                is missing.
            AccessDeniedError: the login failed, or may not create keys.
            KmsUnavailableError: Cloud KMS cannot be reached.
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
                "make it with create_key_ring=True, or check project, location and key ring",
            ) from error
        return self.describe_key(key["name"])

    def list_keys(self) -> list[KeyInfo]:
        """List the symmetric keys of the key ring.

        Raises:
            ConfigurationError: project, location or key_ring is not set, there is no such key ring, or the
                client library is missing.
            AccessDeniedError: the login failed, or may not list keys.
            KmsUnavailableError: Cloud KMS cannot be reached.
        """
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
        """Tell what a key is and whether it can be used.

        Raises:
            KeyNotFoundError: there is no such key.
            ConfigurationError: it is no key's name, or the client library is missing.
            AccessDeniedError: the login failed, or may not look at the key.
            KmsUnavailableError: Cloud KMS cannot be reached.
        """
        name = self._key(key_id)["name"]
        key = self._ask("get_crypto_key", name, name=name)
        versions = self._ask("list_crypto_key_versions", name, listed=True, parent=name)
        return _info(key, len(versions))

    def rotate_key(self, key_id: str) -> KeyInfo:
        """Add a version to a key and make it the primary one. What older versions wrapped still unwraps.

        A version that came to be stays, should making it the primary fail; it can be made so later.

        Raises:
            KeyNotFoundError: there is no such key.
            NotSupportedError: the key is not a symmetric one.
            ConfigurationError: it is no key's name, or the client library is missing.
            AccessDeniedError: the login failed, or may not rotate the key.
            KmsUnavailableError: Cloud KMS cannot be reached, or did not finish the version in time.
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

    @property
    def _name(self) -> str:
        return f"Google Cloud KMS at {self.endpoint or DEFAULT_ENDPOINT}"

    def _key(self, key_id: str) -> dict[str, str]:
        full = key_id
        if self.project and self.location and self.key_ring and re.fullmatch(_PART, key_id):
            full = (
                f"projects/{self.project}/locations/{self.location}/keyRings/{self.key_ring}"
                f"/cryptoKeys/{key_id}"
            )
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
        """Wait until a hardware key's version has been generated; a software key's is at once."""
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
        """Call a method of Google's client, and answer a list whole."""

        def call() -> Any:
            # No retry: whoever set up keys is told at once, and rotate_key would add two versions.
            answer = getattr(self._client(), method)(
                request=request, retry=None, timeout=_TIMEOUT_S
            )
            return list(answer) if listed else answer

        return self._typed(subject, call)

    def _client(self) -> Any:
        kms = load("google.cloud.kms_v1", self.extra)
        credentials = None
        if self.credentials_file is not None:
            auth = load("google.auth", self.extra)
            with warnings.catch_warnings():
                # Deprecated for files from strangers. This one is the user's own, of whatever type.
                warnings.simplefilter("ignore", DeprecationWarning)
                credentials, _ = auth.load_credentials_from_file(
                    os.fspath(self.credentials_file), scopes=[_SCOPE]
                )
        return kms.KeyManagementServiceClient(
            credentials=credentials,
            transport="rest",
            client_options={"api_endpoint": (self.endpoint or DEFAULT_ENDPOINT).rstrip("/")},
        )

    def _typed(self, subject: str, call: Callable[[], T]) -> T:
        """Call, and turn errors of Google's libraries into ours."""
        auth = load("google.auth.exceptions", self.extra)
        api = load("google.api_core.exceptions", self.extra)
        requests = load("requests.exceptions", self.extra)
        try:
            with headers_unshown(f"{self._name} cannot be asked for '{subject}'"):
                return call()
        except (auth.TransportError, requests.RequestException, api.RetryError) as error:
            raise KmsUnavailableError(
                f"{self._name} cannot be reached for '{subject}': {_jvm.first_line(error)}",
                "check the address and the network",
            ) from error
        except auth.DefaultCredentialsError as error:
            raise self._no_credentials(error) from error
        except auth.GoogleAuthError as error:
            raise LoginFailedError(
                f"{self._name}: Google refuses the login for '{subject}': {_oauth(error)}",
                _LOGIN_HINT,
            ) from error
        except api.GoogleAPICallError as error:
            raise self._refused(subject, error) from error

    def _no_credentials(self, error: Exception) -> IcebergCryptoError:
        if self.credentials_file is not None:
            return ConfigurationError(
                f"file {os.fspath(self.credentials_file)} has no credentials: {_jvm.first_line(error)}",
                "give a JSON file that gcloud wrote, as credentials_file",
            )
        return LoginFailedError(
            f"{self._name}: there are no application default credentials",
            "run `gcloud auth application-default login`, or give credentials_file",
        )

    def _refused(self, subject: str, error: Any) -> IcebergCryptoError:
        status, text = _status(error), f"'{subject}': {error.message}"
        if status == "NOT_FOUND":
            return KeyNotFoundError(
                f"{self._name} has no {text}", "check project, location, key ring and key"
            )
        if status == "ALREADY_EXISTS":
            return ConfigurationError(
                f"{self._name} has it already: {text}",
                "choose another name; keys are never overwritten",
            )
        if status == "UNAUTHENTICATED":
            return LoginFailedError(f"{self._name} refuses the login for {text}", _LOGIN_HINT)
        if status == "PERMISSION_DENIED":
            return AccessDeniedError(
                f"{self._name} does not let this login use {text}",
                "ask for the permission that it names; a role that has all is roles/cloudkms.admin",
            )
        if status == "FAILED_PRECONDITION":
            return KeyDisabledError(
                f"{self._name} cannot use {text}", "enable or restore the key version"
            )
        if (error.code or 500) >= 500 or status == "RESOURCE_EXHAUSTED":
            return KmsUnavailableError(
                f"{self._name} is not available for {text}", "try again later"
            )
        return ConfigurationError(
            f"{self._name} refuses {text}", "check the names and the endpoint"
        )


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


def _status(error: Any) -> str:
    """The status of a google.rpc.Status: the library's own types tell only HTTP's codes apart."""
    try:
        return str(error.response.json()["error"]["status"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return ""


def _oauth(error: Exception) -> str:
    """OAuth's error, which the library keeps first; the rest is the whole answer."""
    return str(error.args[0]) if error.args else type(error).__name__
