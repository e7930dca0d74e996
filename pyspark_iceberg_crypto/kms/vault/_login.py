"""Logins to Vault: which one a Vault object names, and its token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark_iceberg_crypto.errors import ConfigurationError, LoginFailedError
from pyspark_iceberg_crypto.kms._errors import ErrorTable, Rule
from pyspark_iceberg_crypto.kms._secrets import read_text
from pyspark_iceberg_crypto.kms._settings import AnyPath

_SENDABLE = re.compile(r"[\x21-\x7e]+")  # else requests' error would show it

SERVICE_ACCOUNT_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 (a path)
AGENT = (
    "; Vault Agent's file sink makes it 0640 at each login: set mode = 0600 in the sink, with this user "
    "as the file's owner"
)


ERRORS = ErrorTable(
    [
        Rule(
            "hvac.exceptions.InvalidRequest hvac.exceptions.Forbidden",
            LoginFailedError,
            "check the role and that it takes this secret (is it expired or used up?), and {mount}",
        ),
    ]
)


@dataclass(frozen=True)
class Method:
    """A login method, by the names of the `Vault` fields that belong to it.

    Attributes:
        mount: the path of the method below auth/.
        role: the role, or what stands for one.
        body: what Vault calls the role.
        secret: what Vault calls the secret; empty with a TLS certificate, which is the secret.
        places: where the secret is; one of them is needed.
        optional: what there may be beside them.
        projected: whether kubelet may have written the secret's file, which others in the pod may read.
    """

    mount: str
    role: str
    body: str
    secret: str = ""
    places: tuple[str, ...] = ()
    optional: str = ""
    projected: bool = False


# By the field that chooses the method.
METHODS = {
    "role_id": Method(
        "approle_mount", "role_id", "role_id", "secret_id", ("secret_id_env", "secret_id_file")
    ),
    "kubernetes_role": Method(
        *("kubernetes_mount", "kubernetes_role", "role", "jwt"),
        optional="kubernetes_token_file",
        projected=True,
    ),
    "jwt_role": Method(
        "jwt_mount", "jwt_role", "role", "jwt", ("jwt_env", "jwt_file"), projected=True
    ),
    "cert_file": Method(
        "cert_mount", "cert_role", "name", places=("cert_key_file",), optional="cert_role"
    ),
}


def check_login(vault: Mapping[str, Any], scheme: str) -> None:
    """Refuse a Vault object with no login, with two, or with what belongs to another.

    Raises:
        ConfigurationError: it has.
    """
    logins = ["token_env", "token_file", *METHODS]
    given = [name for name in logins if vault[name]]
    if len(given) != 1:
        raise ConfigurationError(
            f"Vault needs one of {', '.join(logins)}" + (f"; given: {given}" if given else ""),
            "name the environment variable or the file that holds the token, or a login's role or file",
        )
    for login, method in METHODS.items():
        places, optional = method.places, method.optional
        found = [name for name in places if vault[name]]
        if places and len(found) != (1 if login in given else 0):
            raise ConfigurationError(
                f"{login} needs one of {' and '.join(places)}, and another login needs none of them"
                if len(places) > 1
                else f"{login} needs {''.join(places)}, and another login does not",
                "name where that login's secret is, and nothing of another login",
            )
        if optional and vault[optional] and login not in given:
            raise ConfigurationError(
                f"{optional} has no effect without {login}", f"set {login}, or leave {optional} out"
            )
    if vault["cert_file"] and scheme == "http":
        raise ConfigurationError(
            f"{vault['address']} is http, but the login is by TLS certificate", "use https"
        )


@dataclass(frozen=True)
class Token:
    """A token, and whether a login made it.

    Attributes:
        token: the token, which is not shown.
        seconds: how long it lives, from when it was made; 0: not known, or for ever.
        is_made: whether a login made it, and can make another.
    """

    token: str = field(repr=False)
    seconds: int = 0
    is_made: bool = False


def has_login(vault: Mapping[str, Any]) -> bool:
    """Return whether a Vault object logs in for a token, rather than being given one."""
    return any(vault[name] for name in METHODS)


def token_of(vault: Mapping[str, Any], client: Any, where: str) -> Token:
    """Return a Vault object's token, or log in for one.

    Args:
        vault: the object's fields.
        client: hvac's client.
        where: the Vault, for errors.

    Raises:
        LoginFailedError: Vault refuses.
        ConfigurationError: the secret is not where it should be.
    """
    method = next((method for name, method in METHODS.items() if vault[name]), None)
    if method is None:
        return Token(vault_secret(vault["token_env"], vault["token_file"]))
    mount, role = vault[method.mount], vault[method.role]
    body = {method.body: role} if role else {}
    named = ", ".join(f"{name} {value}" for name, value in body.items()) or "the certificate"
    if method.secret:
        env, file = (
            (vault[place] for place in method.places)
            if method.places
            else (None, vault[method.optional] or SERVICE_ACCOUNT_TOKEN)
        )
        body[method.secret] = vault_secret(env, file, projected=method.projected)
    what = f"{where}: login refused at auth/{mount} for {named}"
    with ERRORS.typed(what, mount=method.mount):
        made = client.adapter.post(f"/v1/auth/{mount.strip('/')}/login", json=body)
    token = str(made["auth"]["client_token"])
    if not _SENDABLE.fullmatch(token):
        raise LoginFailedError(
            f"{where}: what auth/{mount} returned is not a token of Vault's",
            "check the address: is a proxy or another server there?",
        )
    return Token(token, int(made["auth"].get("lease_duration") or 0), is_made=True)


def vault_secret(variable: str | None, file: AnyPath | None, *, projected: bool = False) -> str:
    """Read the secret from the one place that is given; errors name the place only."""
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
            f"{place} does not hold a secret of Vault",
            "it must be the bare text, on one line",
        )
    return found
