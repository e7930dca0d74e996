"""Fixtures: a key in Vault, a policy for it, the file of a login, a proxy, a Kubernetes,
and a Vault that speaks TLS.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from doubles.faults import FaultProxy
from harness.jvm import Jvm
from harness.tls import TestAuthority, make_authority
from servers.kubernetes import Cluster, join
from servers.vault import VaultServer, start_vault
from servers.vault_world import VaultWorld


@pytest.fixture
def key(vault: VaultServer) -> str:
    return vault.make_key()


@pytest.fixture
def policy(vault: VaultServer, key: str) -> str:
    return vault.driver_policy(key)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """The file that holds the token, or the secret id."""
    return tmp_path / "secret"


@pytest.fixture
def proxy(vault: VaultServer, faults: Callable[..., FaultProxy]) -> FaultProxy:
    return faults(vault.port)


@pytest.fixture
def at(
    jvm: Jvm,
    vault: VaultServer,
    key: str,
    policy: str,
    proxy: FaultProxy,
    faults: Callable[..., FaultProxy],
    secret: Path,
    tmp_path: Path,
) -> VaultWorld:
    return VaultWorld(jvm, vault, key, policy, proxy, faults, secret, tmp_path)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def private(
    tmp_path_factory: pytest.TempPathFactory, authority: TestAuthority
) -> Iterator[VaultServer]:
    """A Vault that speaks TLS, with a certificate that only its own authority vouches for."""
    server = start_vault(tmp_path_factory.mktemp("tls-vault") / "log", authority)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def cluster(vault: VaultServer, authority: TestAuthority) -> Iterator[Cluster]:
    made = join(vault, authority)
    yield made
    made.stop()
