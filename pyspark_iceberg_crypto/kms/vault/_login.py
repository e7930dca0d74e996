"""How the helper logs in to Vault, and how a Vault object names its login."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_iceberg_crypto.errors import ConfigurationError, LoginFailedError
from pyspark_iceberg_crypto.kms._secrets import read_text

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.kms.vault import Vault

_SENDABLE = re.compile(r"[\x21-\x7e]+")  # requests' own error for another header shows it

AnyPath = str | os.PathLike[str]

SERVICE_ACCOUNT_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 (a path)
AGENT = (
    "; Vault Agent's file sink makes it 0640 at each login: set mode = 0600 in the sink, with this user "
    "as the file's owner"
)


@dataclass(frozen=True)
class Login:
    """A login that makes a token.

    Attributes:
        mount: the path of the login method below auth/.
        body: what is posted, without the secret.
        secret: the name of the secret in what is posted; empty with a TLS certificate, which is the secret.
        env: the environment variable that holds the secret.
        file: instead, the file that holds it.
        projected: whether kubelet may have put the file there, which others in the pod may read.
        mount_property: what to set when the method is elsewhere.
    """

    mount: str
    body: dict[str, str]
    secret: str = ""
    env: str | None = None
    file: AnyPath | None = None
    projected: bool = False
    mount_property: str = ""

    def token(self, hvac: Any, client: Any, where: str) -> str:
        """Log in.

        Raises:
            LoginFailedError: Vault refuses.
            ConfigurationError: the secret is not where it should be.
        """
        body = dict(self.body)
        if self.secret:
            body[self.secret] = read_secret(self.env, self.file, projected=self.projected)
        try:
            made = client.adapter.post(f"/v1/auth/{self.mount.strip('/')}/login", json=body)
        except (hvac.exceptions.InvalidRequest, hvac.exceptions.Forbidden) as error:
            named = ", ".join(f"{name} {value}" for name, value in self.body.items())
            raise LoginFailedError(
                f"{where}: login refused at auth/{self.mount} for {named or 'the certificate'}: {error}",
                "check the role and that it takes this secret (is it expired or used up?), "
                f"and {self.mount_property}",
            ) from error
        token = str(made["auth"]["client_token"])
        if not _SENDABLE.fullmatch(token):
            raise LoginFailedError(
                f"{where}: what auth/{self.mount} makes is no token of Vault's",
                "check the address: is a proxy or another server there?",
            )
        return token


def check_login(vault: Vault, scheme: str) -> None:
    """Refuse a Vault object with no login, with two, or with what belongs to another.

    Raises:
        ConfigurationError: that is so.
    """
    logins = {
        "token_env": vault.token_env,
        "token_file": vault.token_file,
        "role_id": vault.role_id,
        "kubernetes_role": vault.kubernetes_role,
        "jwt_role": vault.jwt_role,
        "cert_file": vault.cert_file,
    }
    given = [name for name, value in logins.items() if value]
    if len(given) != 1:
        raise ConfigurationError(
            f"Vault needs one of {', '.join(logins)}" + (f"; given: {given}" if given else ""),
            "name the environment variable or the file that holds the token, or a login's role or file",
        )
    belongings = {
        "role_id": ["secret_id_env", "secret_id_file"],
        "jwt_role": ["jwt_env", "jwt_file"],
        "cert_file": ["cert_key_file"],
    }
    for login, names in belongings.items():
        found = [name for name in names if getattr(vault, name)]
        if len(found) != (1 if login in given else 0):
            raise ConfigurationError(
                f"{login} needs one of {' and '.join(names)}, and another login needs none of them"
                if len(names) > 1
                else f"{login} needs {names[0]}, and another login does not",
                "name where that login's secret is, and nothing of another login",
            )
    for name, login in (
        ("kubernetes_token_file", "kubernetes_role"),
        ("cert_role", "cert_file"),
    ):
        if getattr(vault, name) and login not in given:
            raise ConfigurationError(
                f"{name} is of no use without {login}", f"set {login}, or leave {name} out"
            )
    if vault.cert_file and scheme == "http":
        raise ConfigurationError(
            f"{vault.address} is http, and a TLS certificate logs in", "use https"
        )


def login_of(vault: Vault) -> Login | None:
    """Return the login that makes the Vault object's token; None when it has a token."""
    if vault.role_id:
        return Login(
            vault.approle_mount,
            {"role_id": vault.role_id},
            "secret_id",
            vault.secret_id_env,
            vault.secret_id_file,
            mount_property="approle_mount",
        )
    if vault.kubernetes_role:
        return Login(
            vault.kubernetes_mount,
            {"role": vault.kubernetes_role},
            "jwt",
            file=vault.kubernetes_token_file or SERVICE_ACCOUNT_TOKEN,
            projected=True,
            mount_property="kubernetes_mount",
        )
    if vault.jwt_role:
        return Login(
            vault.jwt_mount,
            {"role": vault.jwt_role},
            "jwt",
            vault.jwt_env,
            vault.jwt_file,
            projected=True,
            mount_property="jwt_mount",
        )
    if vault.cert_file:
        named = {"name": vault.cert_role} if vault.cert_role else {}
        return Login(vault.cert_mount, named, mount_property="cert_mount")
    return None


def read_secret(variable: str | None, file: AnyPath | None, *, projected: bool = False) -> str:
    """Read the secret from the one place that is given; errors tell the place only."""
    place = f"environment variable {variable}" if variable else f"file {file}"
    try:
        found = read_text(
            variable or None, Path(file or ""), "Vault's secret", projected=projected, hint=AGENT
        ).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{place} cannot be read: {error}", "check the path") from error
    if not found:
        raise ConfigurationError(f"{place} is not set or empty", "put the secret into it")
    if not _SENDABLE.fullmatch(found):
        raise ConfigurationError(
            f"what {place} holds is no secret of Vault's", "it must be the bare text, on one line"
        )
    return found
