"""A test DOUBLE of Azure Key Vault and Managed HSM: it is not Azure's, and speaks Azure's REST protocol on 127.0.0.1.

There is no emulator of Microsoft's own. This one follows the REST reference of Key Vault's keys (7.4 and later):
paths, JSON web keys, errors with inner codes, the 401 challenge. Keys are real RSA and AES keys
(`doubles.azure_keys`), logins real OAuth (`doubles.azure_login`). One server is every vault: the Host header
names it. TLS is what stands before it: `doubles.faults.FaultProxy`.
"""

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from doubles.azure_keys import (
    Json,
    Key,
    RefusedError,
    Version,
    bad_parameter,
    base64url,
    forbidden,
    make_version,
    not_found,
    unbase64url,
)
from doubles.azure_login import TENANT, Logins, Token, openid_configuration
from doubles.served import Served, Silent

SCOPE = "https://vault.azure.net/.default"
API_VERSIONS = {"7.4", "7.5", "7.6", "2025-07-01"}
VAULT = "lake.vault.azure.net"
HSM = "lake.managedhsm.azure.net"
PAGE = 3  # small, so that tests see pages; Azure's is 25


@dataclass
class AzureDouble(Served):
    """The double. `stop` ends it.

    Attributes:
        port: where it listens, on 127.0.0.1.
        login: its logins.
        keys: by host and name.
        denied: refused operations ("wrapkey", "list", ...), each with Azure's inner code.
        damage: given the answer of a wrap or unwrap, may change it on its way.
        requests: method and path of every request, with the status of its answer.
    """

    login: Logins = field(default_factory=Logins)
    keys: dict[tuple[str, str], Key] = field(default_factory=dict)
    denied: dict[str, str] = field(default_factory=dict)
    damage: Callable[[Json], Json] | None = None
    requests: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add_key(
        self, name: str, kty: str = "RSA", size: int | None = None, host: str = VAULT
    ) -> Key:
        """Makes a key with one version."""
        self.keys[host, name] = Key(name, [make_version(kty, size, None)])
        return self.keys[host, name]

    def answer(self, method: str, target: str, host: str, token: Token, body: Json) -> Json:
        """Answers a request whose login is good."""
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query))
        if "api-version" not in query:
            raise bad_parameter("api-version must be specified")
        if query["api-version"] not in API_VERSIONS:
            raise bad_parameter(
                f"The specified version ({query['api-version']}) is not recognized."
            )
        for verb, pattern, operation, handle in _ROUTES:
            found = re.fullmatch(pattern, parts.path, re.IGNORECASE)
            if verb == method and found:
                if operation in self.denied:
                    raise self._denial(operation, token, host)
                call = _Call(self, host, query, body)
                return handle(call, **{k: v or "" for k, v in found.groupdict().items()})
        raise RefusedError(404, "NotFound", "Resource not found")

    def check(self, token_text: str, host: str) -> Token:
        """Whose token it is."""
        service = "https://" + _vault(host).partition(".")[2]
        challenge = f'Bearer authorization="https://login.microsoftonline.com/{TENANT}", resource="{service}"'
        token = self.login.tokens.get(token_text)
        # AKV10000: the recordings of Azure/azure-sdk-for-js; the others: "Azure Key Vault REST API Error Codes"
        if not token_text:
            why = "AKV10000: Request is missing a Bearer or PoP token."
        elif token is None or time.time() >= token.ends:
            why = "IDX10223: Lifetime validation failed. The token is expired."
        elif time.time() < token.starts:
            why = "IDX10222: Lifetime validation failed. The token is not yet valid."
        elif token.audience != service:
            why = f"AKV10022: Invalid audience. Expected {service}, found: {token.audience}."
        else:
            return token
        raise RefusedError(401, "Unauthorized", why, WWW_Authenticate=challenge)

    def _denial(self, operation: str, token: Token, host: str) -> RefusedError:
        inner = self.denied[operation]
        message = {
            "ForbiddenByFirewall": "Client address is not authorized and caller is not a trusted service.",
            "ForbiddenByRbac": "Caller is not authorized to perform action on resource."
            f" Action: 'Microsoft.KeyVault/vaults/keys/{operation}/action'.",
        }.get(
            inner,
            f"The user, group or application 'appid={token.account};oid=0;iss=https://sts.windows.net/0/'"
            f" does not have keys {operation} permission on key vault '{host.partition('.')[0]}'.",
        )
        return forbidden(message, inner)


@dataclass
class _Call:
    """One request to one vault."""

    double: AzureDouble
    host: str  # with the port, as kids have it here
    query: dict[str, str]
    body: Json

    @property
    def vault(self) -> str:
        return _vault(self.host)

    def key(self, name: str) -> Key:
        key = self.double.keys.get((self.vault, name))
        if key is None or key.deleted is not None:
            raise not_found(name)
        return key

    def pair(self, name: str, version: str) -> tuple[Key, Version]:
        key = self.key(name)
        found = key.version(version)
        if found is None:
            raise not_found(f"{name}/{version}")
        return key, found

    def kid(self, key: Key, version: Version | None = None) -> str:
        end = f"/{version.id}" if version else ""
        return f"https://{self.host}/keys/{key.name}{end}"

    def bundle(self, key: Key, version: Version) -> Json:
        return {
            "key": version.jwk(self.kid(key, version)),
            "attributes": version.attributes(),
            "tags": {},
        }

    def create(self, name: str) -> Json:
        key = self.double.keys.get((self.vault, name))
        if key is not None and key.deleted is not None:
            raise RefusedError(
                409,
                "Conflict",
                f"Key {name} is currently in a deleted but recoverable state, and its name cannot be"
                " reused; in this state, the key can only be recovered or purged.",
                "ObjectIsDeletedButRecoverable",
            )
        kty = self.body.get("kty", "")
        if kty.startswith("oct") and "managedhsm" not in self.vault:
            raise bad_parameter(f"Key type {kty} is not supported")
        made = make_version(kty, self.body.get("key_size"), self.body.get("key_ops"))
        if key is None:
            key = self.double.keys[self.vault, name] = Key(name, [made])
        else:  # Azure does not refuse a name that is taken: it adds a version
            key.versions.append(made)
        return self.bundle(key, made)

    def rotate(self, name: str) -> Json:
        key = self.key(name)
        return self.bundle(key, key.rotate())

    def get(self, name: str, version: str) -> Json:
        return self.bundle(*self.pair(name, version))

    def list_keys(self) -> Json:
        found = [
            (self.kid(key), key.current)
            for (vault, _), key in sorted(self.double.keys.items())
            if vault == self.vault and key.deleted is None
        ]
        return self._page("/keys", found)

    def list_versions(self, name: str) -> Json:
        # By id, so in no order of time: as Azure does.
        key = self.double.keys.get((self.vault, name))
        versions = [] if key is None or key.deleted is not None else key.versions
        found = [(self.kid(key, v), v) for v in sorted(versions, key=lambda v: v.id) if key]
        return self._page(f"/keys/{name}/versions", found)

    def _page(self, path: str, found: list[tuple[str, Version]]) -> Json:
        start = int(self.query.get("$skiptoken", "0"))
        after = start + PAGE
        link = (
            f"https://{self.host}{path}?api-version={self.query['api-version']}&$skiptoken={after}"
        )
        return {
            "value": [
                {"kid": kid, "attributes": version.attributes(), "tags": {}}
                for kid, version in found[start:after]
            ],
            "nextLink": link if after < len(found) else None,
        }

    def use(self, name: str, version: str, operation: str) -> Json:
        key, found = self.pair(name, version)
        kid = self.kid(key, found)
        try:
            value = unbase64url(self.body["value"])
        except (KeyError, ValueError) as error:
            # bruj0/vault-recovery-key#20
            raise bad_parameter(
                "Content of 'value' is not base64url.\r\nProperty 'value' is required.\r\n"
            ) from error
        algorithm = self.body.get("alg", "")
        result = found.use(kid, operation.lower(), algorithm, value)
        answer = {"kid": kid, "value": base64url(result)}
        return self.double.damage(answer) if self.double.damage else answer


_NAME = r"(?P<name>[0-9a-zA-Z-]{1,127})"
_VERSION = r"(?P<version>[0-9a-zA-Z]*)"
_KEY = rf"/keys/{_NAME}"
_ROUTES: list[tuple[str, str, str, Callable[..., Json]]] = [
    ("POST", rf"{_KEY}/create", "create", _Call.create),
    ("POST", rf"{_KEY}/rotate", "rotate", _Call.rotate),
    ("POST", rf"{_KEY}/{_VERSION}/(?P<operation>wrapkey)", "wrapkey", _Call.use),
    ("POST", rf"{_KEY}/{_VERSION}/(?P<operation>unwrapkey)", "unwrapkey", _Call.use),
    ("GET", r"/keys", "list", _Call.list_keys),
    ("GET", rf"{_KEY}/versions", "list", _Call.list_versions),
    ("GET", rf"{_KEY}(?:/{_VERSION})?", "get", _Call.get),
]


def _vault(host: str) -> str:
    """The vault that a Host header names; an address alone is one of them."""
    name = host.partition(":")[0]
    return VAULT if name in ("127.0.0.1", "localhost") else name


class _Handler(Silent):
    protocol_version = "HTTP/1.1"
    double: AzureDouble

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            with self.double.lock:
                status, headers, answer = self._answer(body)
        except RefusedError as error:
            status, headers, answer = error.status, error.headers, error.body
        self.double.requests.append(f"{self.command} {self.path} {status}")
        data = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _handle  # noqa: N815

    def _answer(self, body: bytes) -> tuple[int, dict[str, str], Any]:
        parts = urlsplit(self.path)
        if parts.path == "/msi/token":
            resource = dict(parse_qsl(parts.query)).get("resource", "")
            header = self.headers.get("X-IDENTITY-HEADER")
            status, answer = self.double.login.of_managed_identity(header, resource)
            return status, {}, answer
        if parts.path == "/metadata/identity/oauth2/token" and self.headers.get("Metadata"):
            resource = dict(parse_qsl(parts.query)).get("resource", "")
            status, answer = self.double.login.of_machine(resource)
            return status, {}, answer
        if parts.path.endswith("/.well-known/openid-configuration"):
            base = f"https://{self.headers['Host']}/{TENANT}"
            return 200, {}, openid_configuration(base)
        if parts.path.rstrip("/").endswith(("/oauth2/token", "/oauth2/v2.0/token")):
            status, answer = self.double.login.of_application(dict(parse_qsl(body.decode())))
            return status, {}, answer
        host = self.headers["Host"]
        token = self.double.check(
            self.headers.get("Authorization", "").removeprefix("Bearer ").strip(), host
        )
        given = json.loads(body) if body else {}
        return 200, {}, self.double.answer(self.command, self.path, host, token, given)


AzureDouble.handler = _Handler
