"""Logins at the test DOUBLE of Azure: OAuth tokens for an application's secret and for a managed identity."""

import secrets
import time
from base64 import urlsafe_b64decode
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

TENANT = "adfs"  # the one tenant for which Microsoft's libraries do not first ask Microsoft's own servers
CLIENT_ID = "11111111-2222-3333-4444-555555555555"
CLIENT_SECRET = "client-secret-only-for-tests-2718"
IDENTITY_HEADER = "identity-header-only-for-tests-3141"


@dataclass
class Token:
    """An access token: for whom, for which service, and from when to when (seconds since 1970)."""

    text: str
    account: str
    audience: str
    starts: float
    ends: float


@dataclass
class Logins:
    """What hands out tokens, and checks them.

    Attributes:
        lifetime: of new tokens, in seconds.
        clock: how far the clock of the token service is ahead of the vault's, in seconds.
        refusal: Entra's error code and text for every login from now on, such as "AADSTS7000222".
        granted: how many tokens were handed out.
        after: follows every token that is handed out, such as a newline.
        federated: the one token of another service that is accepted in place of a secret (workload identity).
        certificate: the public key of the application's certificate.
    """

    lifetime: int = 3600
    clock: int = 0
    refusal: tuple[str, str] | None = None
    granted: int = 0
    after: str = ""
    federated: str = ""
    certificate: RSAPublicKey | None = None
    tokens: dict[str, Token] = field(default_factory=dict)

    def grant(self, account: str, scope: str) -> Token:
        """Makes a token for the one service among the scopes; MSAL asks for its own scopes beside it."""
        audience = next(word for word in scope.split() if word.startswith("https://"))
        self.granted += 1
        starts = time.time() + self.clock
        token = Token(
            f"token-only-for-tests-{secrets.token_urlsafe(24)}",
            account,
            audience.removesuffix("/.default").rstrip("/"),
            starts,
            starts + self.lifetime,
        )
        self.tokens[token.text] = token
        return token

    def revoke(self) -> None:
        """No token that was handed out is accepted any more."""
        for token in self.tokens.values():
            token.ends = 0

    def of_application(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """The OAuth 2.0 token endpoint, client credentials grant."""
        refusal = self.refusal
        if refusal is None and form.get("client_id") != CLIENT_ID:
            refusal = ("AADSTS700016", f"Application '{form.get('client_id')}' was not found.")
        assertion = form.get("client_assertion")
        if refusal is None and assertion and not self._asserted(assertion):
            refusal = ("AADSTS700211", "No matching federated identity or certificate was found.")
        if refusal is None and not assertion and form.get("client_secret") != CLIENT_SECRET:
            refusal = ("AADSTS7000215", "Invalid client secret provided.")
        if refusal is not None:
            code, text = refusal
            return 401, {
                "error": "invalid_client",
                "error_description": f"{code}: {text} Trace ID: 0 Correlation ID: 0",
                "error_codes": [int(code.removeprefix("AADSTS"))],
            }
        token = self.grant(f"app:{CLIENT_ID}", form.get("scope") or form.get("resource", ""))
        return 200, {
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "ext_expires_in": self.lifetime,
            "access_token": token.text + self.after,
        }

    def _asserted(self, assertion: str) -> bool:
        """Whether another service's token, or a JWT signed by the certificate's key, says who asks."""
        if self.federated:
            return assertion == self.federated
        signed, _, signature = assertion.rpartition(".")
        pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
        for pad in (padding.PKCS1v15(), pss):
            with suppress(InvalidSignature):
                assert self.certificate is not None
                self.certificate.verify(
                    urlsafe_b64decode(signature + "=="), signed.encode(), pad, hashes.SHA256()
                )
                return True
        return False

    def of_machine(self, resource: str) -> tuple[int, dict[str, Any]]:
        """The Instance Metadata Service of a virtual machine or AKS node."""
        return self.of_managed_identity(IDENTITY_HEADER, resource)

    def of_managed_identity(self, header: str | None, resource: str) -> tuple[int, dict[str, Any]]:
        """The token endpoint inside App Service and Container Apps, api-version 2019-08-01."""
        if header != IDENTITY_HEADER or self.refusal is not None:
            return 400, {
                "statusCode": 400,
                "message": "No User Assigned or Delegated Managed Identity found for specified"
                " ClientId/ResourceId/PrincipalId.",
            }
        token = self.grant("managed-identity", resource)
        return 200, {
            "access_token": token.text + self.after,
            "expires_on": str(int(token.ends)),
            "resource": resource,
            "token_type": "Bearer",
            "client_id": CLIENT_ID,
        }


def openid_configuration(base: str) -> dict[str, Any]:
    """What the login service says of itself (OpenID Connect Discovery)."""
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}/oauth2/authorize",
        "token_endpoint": f"{base}/oauth2/token",
    }
