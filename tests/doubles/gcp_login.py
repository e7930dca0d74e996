"""Google's logins, as the double has them: OAuth, token exchange, impersonation, a machine's metadata server."""

import base64
import hashlib
import json
import secrets
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from harness.files import secret_file
from harness.tls import pem_of

Json = dict[str, Any]

SCOPES = {
    "https://www.googleapis.com/auth/cloudkms",
    "https://www.googleapis.com/auth/cloud-platform",
}
CLOUD_KMS = "https://cloudkms.googleapis.com/"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
SUBJECT_TOKEN = "subject-token-only-for-tests-173205"
REFRESH_TOKEN = "refresh-token-only-for-tests-223606"
CLIENT_SECRET = "client-secret-only-for-tests-264575"
OWNER = "owner@test-project.iam.gserviceaccount.com"
USER = "somebody@example.com"


class LoginRefusedError(Exception):
    """OAuth's error answer (RFC 6749, section 5.2)."""

    def __init__(self, error: str, description: str, code: int = 400) -> None:
        super().__init__(description)
        self.code = code
        self.body = {"error": error, "error_description": description}


@dataclass
class Token:
    account: str
    scopes: set[str]
    expires: float


@dataclass
class Logins:
    """Accounts, their keys and the tokens they were given.

    Attributes:
        clock_skew: seconds that this server's clock is ahead of the clients'.
        lifetime: seconds that a token is said to live, and lives.
        after: follows every token that is handed out, such as a newline.
    """

    url: str = ""
    clock_skew: float = 0.0
    lifetime: int = 3600
    after: str = ""
    tokens: dict[str, Token] = field(default_factory=dict)
    logins: int = 0
    _keys: dict[str, rsa.RSAPrivateKey] = field(default_factory=dict)

    def service_account(self, path: Path, email: str = OWNER, **changes: Any) -> Path:
        """Writes a key file of a service account, as `gcloud iam service-accounts keys create` does."""
        key = self._keys.setdefault(email, _first_key(email))
        pem = pem_of(key).decode()
        content = {
            "type": "service_account",
            "project_id": "test-project",
            "private_key_id": hashlib.sha1(pem.encode()).hexdigest(),
            "private_key": pem,
            "client_email": email,
            "client_id": "100000000000000000001",
            "token_uri": f"{self.url}/token",
            "universe_domain": "googleapis.com",
        }
        return _write(path, content | changes)

    def authorized_user(self, path: Path) -> Path:
        """Writes what `gcloud auth application-default login` writes; Java finds token_uri in it."""
        content = {
            "type": "authorized_user",
            "client_id": "tests.apps.googleusercontent.com",
            "client_secret": CLIENT_SECRET,
            "refresh_token": REFRESH_TOKEN,
            "token_uri": f"{self.url}/token",
        }
        return _write(path, content)

    def external_account(self, path: Path, url: str, impersonate: str = "") -> Path:
        """Writes what `gcloud iam workload-identity-pools create-cred-config` writes: no secret in it.

        `url` leads to this server with TLS: Google's library insists on it here.
        """
        subject = path.with_suffix(".subject")
        subject.write_text(SUBJECT_TOKEN)
        content: Json = {
            "type": "external_account",
            "audience": "//iam.googleapis.com/locations/global/workforcePools/p/providers/x",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{url}/v1/token",
            "credential_source": {"file": str(subject)},
        }
        if impersonate:
            content["service_account_impersonation_url"] = (
                f"{url}/v1/projects/-/serviceAccounts/{impersonate}:generateAccessToken"
            )
        _write(path, content).chmod(0o644)
        return path

    def token(self, form: dict[str, str]) -> Json:
        """Answers POST /token and, for token exchange, POST /v1/token."""
        self.logins += 1
        grant = form.get("grant_type")
        if grant == JWT_BEARER:
            claims = self._verified(form["assertion"])
            # Java's library names Google's own address here, whatever the file's token_uri is
            if claims.get("aud") not in (
                f"{self.url}/token",
                "https://oauth2.googleapis.com/token",
            ):
                raise LoginRefusedError("invalid_grant", "Invalid JWT: Failed audience check.")
            return self._issue(claims["iss"], set(claims["scope"].split()))
        if grant == "refresh_token":
            if (form.get("refresh_token"), form.get("client_secret")) != (
                REFRESH_TOKEN,
                CLIENT_SECRET,
            ):
                raise LoginRefusedError("invalid_grant", "Token has been expired or revoked.")
            return self._issue(USER, SCOPES)
        if grant == TOKEN_EXCHANGE:
            if form.get("subject_token") != SUBJECT_TOKEN:
                raise LoginRefusedError("invalid_grant", "The subject token is not valid.")
            issued = self._issue(USER, set(form["scope"].split()))
            issued["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token"
            return issued
        raise LoginRefusedError("unsupported_grant_type", f"Invalid grant_type: {grant}")

    def generate(self, account: str, request: Json) -> Json:
        """Answers IAM's generateAccessToken: one account's token for another's."""
        issued = self._issue(account, set(request["scope"]))
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lifetime))
        return {"accessToken": issued["access_token"], "expireTime": expires}

    def metadata(self) -> Json:
        """Answers what a machine's metadata server answers for its service account."""
        self.logins += 1
        return self._issue(OWNER, SCOPES)

    def account_of(self, authorization: str) -> Token | None:
        """Who a request comes from; None when its token is not valid now."""
        scheme, _, token = authorization.partition(" ")
        if scheme != "Bearer":
            return None
        if token in self.tokens:
            found = self.tokens[token]
            return found if found.expires > time.time() else None
        if token.count(".") == 2:  # a service account's own JWT instead of a token
            try:
                claims = self._verified(token)
            except LoginRefusedError:
                return None
            scopes = set(claims.get("scope", "").split())
            if claims.get("aud") == CLOUD_KMS:
                scopes = SCOPES
            return Token(claims["iss"], scopes, claims["exp"])
        return None

    def revoke(self) -> None:
        """Forgets all tokens: they were revoked, or expired earlier than they said."""
        self.tokens.clear()

    def delete_key(self, email: str = OWNER) -> None:
        """Replaces an account's key: files written before are no good any more."""
        self._keys[email] = rsa.generate_private_key(65537, 2048)

    def _issue(self, account: str, scopes: set[str]) -> Json:
        token = "ya29.only-for-tests-" + secrets.token_urlsafe(24)
        self.tokens[token] = Token(account, scopes, time.time() + self.lifetime)
        return {
            "access_token": token + self.after,
            "expires_in": self.lifetime,
            "token_type": "Bearer",
        }

    def _verified(self, jwt: str) -> Json:
        header, payload, signature = jwt.split(".")
        claims: Json = json.loads(_decode(payload))
        key = self._keys.get(claims.get("iss", ""))
        if key is None:
            raise LoginRefusedError("invalid_grant", "Invalid grant: account not found")
        try:
            key.public_key().verify(
                _decode(signature),
                f"{header}.{payload}".encode(),
                padding.PKCS1v15(),
                hashes.SHA256(),
            )
        except InvalidSignature:
            raise LoginRefusedError("invalid_grant", "Invalid JWT Signature.") from None
        clock = time.time() + self.clock_skew
        if not (claims["iat"] - 300 <= clock <= claims["exp"] <= claims["iat"] + 3600):
            raise LoginRefusedError(
                "invalid_grant",
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
                " Check your iat and exp values in the JWT claim.",
            )
        return claims


@cache
def _first_key(email: str) -> rsa.RSAPrivateKey:
    """The key that an account has in every double until it is replaced: to make one takes long."""
    return rsa.generate_private_key(65537, 2048)


def _decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _write(path: Path, content: Json) -> Path:
    return secret_file(path, json.dumps(content, indent=2))
