"""The double of Azure as a host sees it: behind TLS and faults, with a login in the environment."""

from dataclasses import dataclass
from pathlib import Path

from harness.tls import TestAuthority, make_authority

from doubles.azure import HSM, SCOPE, VAULT, AzureDouble
from doubles.azure_login import CLIENT_ID, CLIENT_SECRET, IDENTITY_HEADER, TENANT
from doubles.faults import FaultProxy

LOGIN = "login.test"
# For each JVM with Azure's library, whose HTTP client would take io_uring: on that some kernels of virtual machines
# keep answers back.
OTHER_SOCKETS = "-Dreactor.netty.native=false"


@dataclass
class AzureWorld:
    """A running double. `stop` ends it.

    Attributes:
        double: the vaults and the logins.
        proxy: speaks TLS as every vault and as the login service.
        authority: who signed its certificate.
        hosts: a file for -Djdk.net.hosts.file, in which the names of the vaults are 127.0.0.1.
    """

    double: AzureDouble
    proxy: FaultProxy
    authority: TestAuthority
    hosts: Path

    def url(self, host: str = VAULT) -> str:
        """Where a vault is, for a JVM with java_options."""
        return f"https://{host}:{self.proxy.port}"

    @property
    def plain_url(self) -> str:
        """Where the first vault is, for anyone; needs SCOPE as token scope."""
        return f"https://127.0.0.1:{self.proxy.port}"

    @property
    def trusting_options(self) -> list[str]:
        """For a JVM that trusts this world's certificate, and does not know its hosts."""
        return [*self.authority.java_options, OTHER_SOCKETS]

    @property
    def java_options(self) -> list[str]:
        """The same for one that knows them."""
        return [*self.trusting_options, f"-Djdk.net.hosts.file={self.hosts}"]

    def as_application(self, host: str = LOGIN) -> dict[str, str]:
        """The environment of a host with an application's client secret."""
        return {
            # Nothing but this: no metadata service is looked for, and nobody's own login is used.
            "AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential",
            "AZURE_AUTHORITY_HOST": f"https://{host}:{self.proxy.port}",
            "AZURE_TENANT_ID": TENANT,
            "AZURE_CLIENT_ID": CLIENT_ID,
            "AZURE_CLIENT_SECRET": CLIENT_SECRET,
            "REQUESTS_CA_BUNDLE": str(self.authority.ca_file),
        }

    def as_managed_identity(self) -> dict[str, str]:
        """The environment of a host with a managed identity, as App Service has it."""
        return {
            "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
            "IDENTITY_ENDPOINT": f"http://127.0.0.1:{self.double.port}/msi/token",
            "IDENTITY_HEADER": IDENTITY_HEADER,
            "REQUESTS_CA_BUNDLE": str(self.authority.ca_file),
        }

    def as_machine(self) -> dict[str, str]:
        """The environment of a virtual machine with a managed identity, whose metadata service is the double."""
        return {
            "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
            "AZURE_POD_IDENTITY_AUTHORITY_HOST": f"http://127.0.0.1:{self.double.port}",
        }

    def as_workload(self, token_file: Path) -> dict[str, str]:
        """The environment of a pod in AKS with a workload identity."""
        return {
            **self._as_client("WorkloadIdentityCredential"),
            "AZURE_FEDERATED_TOKEN_FILE": str(token_file),
        }

    def with_certificate(self, file: Path) -> dict[str, str]:
        """The environment of a host with an application's certificate."""
        return {
            **self._as_client("EnvironmentCredential"),
            "AZURE_CLIENT_CERTIFICATE_PATH": str(file),
        }

    def _as_client(self, kind: str) -> dict[str, str]:
        application = self.as_application()
        del application["AZURE_CLIENT_SECRET"]
        return application | {"AZURE_TOKEN_CREDENTIALS": kind}

    def stop(self) -> None:
        self.proxy.stop()
        self.double.stop()


def start_azure(folder: Path) -> AzureWorld:
    """Starts the double.

    Args:
        folder: gets its files.
    """
    authority = make_authority(folder, VAULT, HSM, LOGIN, "localhost")
    hosts = folder / "hosts"
    hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in (VAULT, HSM, LOGIN, "localhost")))
    double = AzureDouble().start()
    return AzureWorld(double, FaultProxy(double.port, authority.server).start(), authority, hosts)


def asked(double: AzureDouble) -> list[str]:
    """What the vaults were asked since the last time: "unwrapkey 400", "wrapkey VERSION", ..."""
    words = []
    for request in double.requests:
        _, path, status = request.split()
        parts = path.partition("?")[0].split("/")
        if "token" not in parts:
            named = parts[3] if len(parts) == 5 else ""
            words.append(" ".join(filter(None, [parts[-1], named, status.replace("200", "")])))
    double.requests.clear()
    return words


def flipped(blob: bytes, place: int) -> bytes:
    """With one bit changed."""
    changed = bytearray(blob)
    changed[place] ^= 1
    return bytes(changed)


__all__ = ["OTHER_SOCKETS", "SCOPE", "AzureWorld", "asked", "flipped", "start_azure"]
