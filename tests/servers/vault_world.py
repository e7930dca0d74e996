"""What the tests of the Vault client's logins have at hand."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doubles.faults import FaultProxy
from harness.jvm import Client, Jvm

from servers.vault import VaultServer


@dataclass
class VaultWorld:
    """A JVM, a Vault with a key and a policy for it, a proxy on the way, and the file that a login's secret is in."""

    jvm: Jvm
    vault: VaultServer
    key: str
    policy: str
    proxy: FaultProxy
    faults: Callable[..., FaultProxy]
    secret: Path
    folder: Path

    def token(
        self, file: Path | None = None, proxy: FaultProxy | None = None, **how: Any
    ) -> Client:
        """A client without cache and retries, by a token; `how`: see `VaultServer.make_token`."""
        address = (proxy or self.proxy).url
        login = self.vault.token_login(file or self.secret, self.policy, address=address, **how)
        return self.jvm.client(login, raw=True)

    def approle(self, **how: Any) -> Client:
        """The same by a role."""
        return self.jvm.client(self.role(**how), raw=True)

    def role(self, **how: Any) -> dict[str, str]:
        """Its properties; `how`: see `VaultServer.make_approle`."""
        return self.vault.approle_login(self.secret, self.policy, address=self.proxy.url, **how)
