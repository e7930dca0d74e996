"""This process as one whose Python calls a KMS by itself."""

from collections.abc import Mapping

import google.auth.credentials
import pkcs11
import pytest
from servers.softhsm import find_library

from pyspark_iceberg_crypto.kms.pkcs11 import _keys

_READ: list[str] = []


def in_python(environment: Mapping[str, str], patch: pytest.MonkeyPatch) -> None:
    """Takes the variables that the clients of some KMSs need, and lets go of the tokens of other tests.

    Args:
        environment: of each process that uses the KMSs.
        patch: takes it back.
    """
    for name, value in environment.items():
        patch.setenv(name, value)
    patch.setenv("NO_PROXY", "*")
    # Google's library asks where an account may work, beside what it is told to.
    patch.setattr(
        google.auth.credentials.CredentialsWithRegionalAccessBoundary,
        "_is_regional_access_boundary_lookup_required",
        lambda credentials: False,
    )
    configuration = environment.get("SOFTHSM2_CONF")
    if configuration and configuration not in _READ[-1:]:
        _keys._Token._all.clear()
        # SoftHSM reads its configuration once in a process, unless it begins again.
        pkcs11.lib(str(find_library())).reinitialize()
        _READ.append(configuration)
