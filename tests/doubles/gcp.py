"""A test DOUBLE of Google Cloud KMS: it is not Google's, and speaks Google's wire protocol on 127.0.0.1.

There is no emulator of Google's own. This one follows the discovery document of Cloud KMS v1: paths, fields,
enums, `google.rpc.Status` errors with the texts that Google's users report (gcp_keys.py), CRC32C checksums.
Encryption is real AES-GCM under versions with states; logins are real OAuth with signed JWTs.
"""

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from doubles.gcp_keys import (
    ENCRYPT_DECRYPT,
    LEVELS,
    PURPOSES,
    Json,
    Key,
    RefusedError,
    Version,
    crc32c,
    enum,
    invalid,
    not_found,
)
from doubles.gcp_login import SCOPES, LoginRefusedError, Logins, Token
from doubles.served import Served, Silent

PROJECT = "test-project"
RING = f"projects/{PROJECT}/locations/europe-west3/keyRings/lake"
_RING_NAME = r"projects/[^/]+/locations/[^/]+/keyRings/[^/:]+"
_RING = rf"(?P<ring>{_RING_NAME})"
_KEY = rf"(?P<key>{_RING_NAME}/cryptoKeys/[^/:]+)"
_VERSION = r"/cryptoKeyVersions/(?P<number>[^/:]+)"


@dataclass
class GcpKmsDouble(Served):
    """The double. `stop` ends it.

    Attributes:
        port: where it listens, on 127.0.0.1, with plain HTTP.
        login: its accounts; writes credentials files.
        keys: by name.
        granted: the permissions of each account; an account that is not in it has all.
        api_enabled: whether the project has the Cloud KMS API.
        change_answer: given the answer of an encrypt or decrypt, may damage it on its way.
        change_request: the same for a request, before the double reads it.
    """

    login: Logins = field(default_factory=Logins)
    rings: set[str] = field(default_factory=lambda: {RING})
    keys: dict[str, Key] = field(default_factory=dict)
    granted: dict[str, set[str]] = field(default_factory=dict)
    api_enabled: bool = True
    change_answer: Any = None
    change_request: Any = None

    def start(self) -> "GcpKmsDouble":
        super().start()
        self.login.url = self.url
        return self

    def add_key(self, name: str, purpose: str = ENCRYPT_DECRYPT) -> str:
        """Makes a key with one version, and returns its full name."""
        key = Key(f"{RING}/cryptoKeys/{name}", purpose)
        key.add_version()
        key.primary = 1 if purpose == ENCRYPT_DECRYPT else 0
        self.keys[key.name] = key
        return key.name

    def answer(self, method: str, path: str, query: dict[str, str], body: Json) -> Json | None:
        """Answers a request whose login is good; None when there is no such method."""
        for verb, pattern, handle in _ROUTES:
            found = re.fullmatch(pattern, path)
            if verb == method and found:
                return handle(self, query, body, **found.groupdict())  # type: ignore[no-any-return]
        return None

    def authorize(self, token: Token, permission: str, resource: str) -> None:
        """Refuses an account without the permission."""
        if not self.api_enabled:
            raise RefusedError(
                403,
                "PERMISSION_DENIED",
                "Cloud Key Management Service (KMS) API has not been used in project 1 before or it is disabled.",
                _info("SERVICE_DISABLED", {"service": "cloudkms.googleapis.com"}),
            )
        if not token.scopes & SCOPES:
            raise RefusedError(
                403,
                "PERMISSION_DENIED",
                "Request had insufficient authentication scopes.",
                _info("ACCESS_TOKEN_SCOPE_INSUFFICIENT", {"service": "cloudkms.googleapis.com"}),
            )
        if token.account in self.granted and permission not in self.granted[token.account]:
            raise RefusedError(
                403,
                "PERMISSION_DENIED",
                f"Permission '{permission}' denied on resource '{resource}' (or it may not exist).",
                _info("IAM_PERMISSION_DENIED", {"permission": permission, "resource": resource}),
            )

    def key(self, name: str) -> Key:
        if name.partition("/cryptoKeys/")[0] not in self.rings:
            raise not_found(name.partition("/cryptoKeys/")[0])
        if name not in self.keys:
            raise not_found(name)
        return self.keys[name]

    def create_ring(self, query: Json, body: Json, parent: str) -> Json:
        name = f"{parent}/keyRings/{query['keyRingId']}"
        if name in self.rings:
            raise RefusedError(409, "ALREADY_EXISTS", f"KeyRing {name} already exists.")
        self.rings.add(name)
        return {"name": name}

    def get_ring(self, query: Json, body: Json, ring: str) -> Json:
        if ring not in self.rings:
            raise not_found(ring)
        return {"name": ring}

    def create_key(self, query: Json, body: Json, ring: str) -> Json:
        self.get_ring(query, body, ring)
        name = f"{ring}/cryptoKeys/{query['cryptoKeyId']}"
        if name in self.keys:
            raise RefusedError(409, "ALREADY_EXISTS", f"CryptoKey {name} already exists.")
        purpose = enum(PURPOSES, body.get("purpose"), "")
        if not purpose:
            raise invalid("The crypto_key.purpose field is required.")
        level = enum(LEVELS, body.get("versionTemplate", {}).get("protectionLevel"), "SOFTWARE")
        made = Key(name, purpose, level, body.get("labels", {}))
        made.add_version()
        made.primary = 1 if purpose == ENCRYPT_DECRYPT else 0
        self.keys[name] = made
        return made.json()

    def list_keys(self, query: Json, body: Json, ring: str) -> Json:
        self.get_ring(query, body, ring)
        names = sorted(name for name in self.keys if name.startswith(f"{ring}/cryptoKeys/"))
        found = [self.keys[name].json() for name in names]
        return _page("cryptoKeys", found, query)

    def get_key(self, query: Json, body: Json, key: str) -> Json:
        return self.key(key).json()

    def create_version(self, query: Json, body: Json, key: str) -> Json:
        return self.key(key).add_version().json()

    def list_versions(self, query: Json, body: Json, key: str) -> Json:
        found = [version.json() for version in self.key(key).versions.values()]
        return _page("cryptoKeyVersions", found, query)

    def get_version(self, query: Json, body: Json, key: str, number: str) -> Json:
        return self.key(key).version(number).json()

    def update_primary(self, query: Json, body: Json, key: str) -> Json:
        found = self.key(key)
        found.require_purpose()
        found.version(body["cryptoKeyVersionId"]).require_enabled()
        found.primary = int(body["cryptoKeyVersionId"])
        return found.json()

    def encrypt(self, query: Json, body: Json, key: str, number: str | None) -> Json:
        version = self.key(key).encrypting(number)
        plaintext, aad = _checked(body, "plaintext"), _checked(body, "additionalAuthenticatedData")
        ciphertext = version.encrypt(plaintext, aad)
        return {
            "name": version.name,
            "ciphertext": base64.b64encode(ciphertext).decode(),
            "ciphertextCrc32c": str(crc32c(ciphertext)),
            "protectionLevel": version.level,
        } | {
            f"verified{field[0].upper()}{field[1:]}Crc32c": True
            for field in ("plaintext", "additionalAuthenticatedData")
            if f"{field}Crc32c" in body
        }

    def decrypt(self, query: Json, body: Json, key: str) -> Json:
        found = self.key(key)
        ciphertext, aad = (
            _checked(body, "ciphertext"),
            _checked(body, "additionalAuthenticatedData"),
        )
        version = found.decrypting(ciphertext)
        plaintext = version.decrypt(ciphertext, aad)
        answer = {
            "plaintext": base64.b64encode(plaintext).decode(),
            "plaintextCrc32c": str(crc32c(plaintext)),
            "protectionLevel": version.level,
        }
        return answer | ({"usedPrimary": True} if found.versions[found.primary] is version else {})

    def version(self, key: str, number: int = 1) -> Version:
        return self.keys[key].versions[number]


_ROUTES = (
    ("POST", r"/v1/(?P<parent>projects/[^/]+/locations/[^/]+)/keyRings", GcpKmsDouble.create_ring),
    ("GET", rf"/v1/{_RING}", GcpKmsDouble.get_ring),
    ("POST", rf"/v1/{_RING}/cryptoKeys", GcpKmsDouble.create_key),
    ("GET", rf"/v1/{_RING}/cryptoKeys", GcpKmsDouble.list_keys),
    ("GET", rf"/v1/{_KEY}", GcpKmsDouble.get_key),
    ("POST", rf"/v1/{_KEY}/cryptoKeyVersions", GcpKmsDouble.create_version),
    ("GET", rf"/v1/{_KEY}/cryptoKeyVersions", GcpKmsDouble.list_versions),
    ("GET", rf"/v1/{_KEY}{_VERSION}", GcpKmsDouble.get_version),
    ("POST", rf"/v1/{_KEY}:updatePrimaryVersion", GcpKmsDouble.update_primary),
    ("POST", rf"/v1/{_KEY}(?:{_VERSION})?:encrypt", GcpKmsDouble.encrypt),
    ("POST", rf"/v1/{_KEY}:decrypt", GcpKmsDouble.decrypt),
)

_PERMISSIONS = (
    (r"POST .*/keyRings", "cloudkms.keyRings.create"),
    (r"GET .*/keyRings/[^/]+", "cloudkms.keyRings.get"),
    (r"POST .*/cryptoKeys", "cloudkms.cryptoKeys.create"),
    (r"GET .*/cryptoKeys", "cloudkms.cryptoKeys.list"),
    (r"GET .*/cryptoKeys/[^/]+", "cloudkms.cryptoKeys.get"),
    (r"POST .*:updatePrimaryVersion", "cloudkms.cryptoKeys.update"),
    (r"POST .*/cryptoKeyVersions", "cloudkms.cryptoKeyVersions.create"),
    (r"GET .*/cryptoKeyVersions", "cloudkms.cryptoKeyVersions.list"),
    (r"GET .*/cryptoKeyVersions/\d+", "cloudkms.cryptoKeyVersions.get"),
    (r".*:encrypt", "cloudkms.cryptoKeyVersions.useToEncrypt"),
    (r".*:decrypt", "cloudkms.cryptoKeyVersions.useToDecrypt"),
)

_UNAUTHENTICATED = RefusedError(
    401,
    "UNAUTHENTICATED",
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other"
    " valid authentication credential.",
)


class _Handler(Silent):
    protocol_version = "HTTP/1.1"
    double: GcpKmsDouble

    def _handle(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        try:
            self._send(*self._answer(url.path, dict(parse_qsl(url.query)), raw))
        except (RefusedError, LoginRefusedError) as refused:
            self._send(refused.code, refused.body)

    do_GET = do_POST = _handle  # noqa: N815

    def _answer(self, path: str, query: dict[str, str], raw: bytes) -> tuple[int, Json | None]:
        double, login = self.double, self.double.login
        if path in ("/token", "/v1/token"):
            return 200, login.token(dict(parse_qsl(raw.decode())))
        if self.headers.get("Metadata-Flavor") == "Google":
            return 200, login.metadata() if path.endswith("/default/token") else {}
        token = login.account_of(self.headers.get("Authorization", ""))
        if token is None:
            raise _UNAUTHENTICATED
        body = json.loads(raw or b"{}")
        impersonated = re.fullmatch(r".*/serviceAccounts/([^/]+):generateAccessToken", path)
        if impersonated:
            return 200, login.generate(impersonated[1], body)
        for pattern, permission in _PERMISSIONS:
            if re.fullmatch(pattern, f"{self.command} {path}"):
                double.authorize(token, permission, path.removeprefix("/v1/").partition(":")[0])
        if double.change_request:
            double.change_request(body)
        answer = double.answer(self.command, path, query, body)
        if answer is not None and double.change_answer:
            double.change_answer(answer)
        return (404, None) if answer is None else (200, answer)

    def _send(self, code: int, body: Json | None) -> None:
        content = b"<html><title>Error 404 (Not Found)!!1</title></html>"
        if body is not None:
            content = json.dumps(body).encode()
        self.send_response_only(code)
        self.send_header("Content-Type", "text/html" if body is None else "application/json")
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


GcpKmsDouble.handler = _Handler


def _checked(body: Json, field: str) -> bytes:
    """A field of bytes, whole by the checksum that the client sent."""
    value = base64.b64decode(body.get(field, ""))
    checksum = body.get(f"{field}Crc32c")
    if checksum is not None and int(checksum) != crc32c(value):
        name = re.sub(r"([A-Z])", r"_\1", field).lower()
        raise invalid(
            f"The checksum in field {name}_crc32c did not match the data in field {name}."
        )
    return value


def _page(kind: str, found: list[Json], query: dict[str, str]) -> Json:
    """Two at a time, so that clients have to turn pages."""
    start = int(query.get("pageToken") or 0)
    answer: Json = {"totalSize": len(found)}
    if found:
        answer[kind] = found[start : start + 2]
    if start + 2 < len(found):
        answer["nextPageToken"] = str(start + 2)
    return answer


def _info(reason: str, metadata: dict[str, str]) -> Json:
    return {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": metadata,
    }
