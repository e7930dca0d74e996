"""A Vault, and the Kubernetes whose service accounts log in there; who reviews their tokens is a double."""

from dataclasses import dataclass
from pathlib import Path

from doubles.service_accounts import Issuer, TokenReviews
from harness.tls import TestAuthority

from servers.vault import VaultServer, write_secret


@dataclass(frozen=True)
class Cluster:
    """Both; `stop` ends the reviews."""

    vault: VaultServer
    issuer: Issuer
    reviews: TokenReviews

    def login(
        self, kind: str, file: Path, *policies: str, address: str = "", **parameters: object
    ) -> dict[str, str]:
        """Properties of a client of this kind; a token of the issuer is put into the file."""
        write_secret(file, self.issuer.token())
        make = self.vault.kubernetes_login if kind == "kubernetes" else self.vault.jwt_login
        return make(file, *policies, address=address, **parameters)

    def stop(self) -> None:
        self.reviews.stop()


def join(vault: VaultServer, authority: TestAuthority) -> Cluster:
    """Has this Vault's `auth/kubernetes` and `auth/jwt` trust a new cluster."""
    issuer = Issuer()
    reviews = TokenReviews(issuer, authority.server)
    vault.enable_kubernetes(reviews, authority.ca_file)
    vault.enable_jwt(issuer)
    return Cluster(vault, issuer, reviews)
