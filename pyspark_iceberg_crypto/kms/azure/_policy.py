"""The least that Spark's identity needs in Azure, as lines for the az command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

_ROLE = "Iceberg table keys"
_ASSIGNEE = '--assignee-object-id "$PRINCIPAL_ID" --assignee-principal-type ServicePrincipal'


def vault_policy(vault: str, keys: Sequence[str], finds_versions: bool) -> str:
    """Return a role of our own and its assignment to keys of a Key Vault with Azure RBAC.

    Args:
        vault: the vault's name.
        keys: names of keys.
        finds_versions: whether unwrapping may have to list a key's versions.
    """
    verbs = ["wrap/action", "unwrap/action"] + (["read"] if finds_versions else [])
    role = json.dumps(
        {
            "Name": _ROLE,
            "Description": "Wrap and unwrap the keys of encrypted Iceberg tables",
            "DataActions": [f"Microsoft.KeyVault/vaults/keys/{verb}" for verb in verbs],
            "AssignableScopes": ["/subscriptions/$SUBSCRIPTION_ID"],
        },
        indent=2,
    ).replace('"/subscriptions/$SUBSCRIPTION_ID"', '"/subscriptions/\'"$SUBSCRIPTION_ID"\'"')
    lines = [
        f"# What Spark needs of the vault {vault} (permission model: Azure RBAC). PRINCIPAL_ID is the object id",
        "# of Spark's identity, SUBSCRIPTION_ID the vault's subscription. The vault must exist.",
    ]
    if finds_versions:
        lines.append(
            "# read: lists a key's versions, to find the one that wrapped before a rotation."
        )
    lines += [
        f"az role definition create --role-definition '{role}'",
        f"VAULT_ID=$(az keyvault show --name {shlex.quote(vault)} --query id --output tsv)",
        *(
            f"az role assignment create --role {shlex.quote(_ROLE)} {_ASSIGNEE}"
            f' --scope "$VAULT_ID/keys/{key}"'
            for key in keys
        ),
        "# In a vault with access policies there is no choice of keys:",
        f'# az keyvault set-policy --name {shlex.quote(vault)} --object-id "$PRINCIPAL_ID"'
        f" --key-permissions wrapKey unwrapKey{' list' if finds_versions else ''}",
    ]
    return "\n".join(lines) + "\n"


def hsm_policy(hsm: str, keys: Sequence[str]) -> str:
    """Return the assignment of the built-in role to keys of a Managed HSM.

    Args:
        hsm: the Managed HSM's name.
        keys: names of keys.
    """
    lines = [
        f"# What Spark needs of the Managed HSM {hsm}: a built-in role that may read (list versions), wrap and",
        "# unwrap. PRINCIPAL_ID is the object id of Spark's identity.",
        *(
            f"az keyvault role assignment create --hsm-name {shlex.quote(hsm)}"
            f" --role 'Managed HSM Crypto Service Encryption User' {_ASSIGNEE} --scope /keys/{key}"
            for key in keys
        ),
    ]
    return "\n".join(lines) + "\n"
