"""A certificate authority for tests: a server's certificate for 127.0.0.1, and Java's trust in it."""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from harness.files import secret_file

AnyKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
TRUST_PASSWORD = "trust-only"


@dataclass(frozen=True)
class TestAuthority:
    """An authority and a server's certificate of it.

    Attributes:
        server: for a server's side of TLS.
        ca_file: the authority's certificate, PEM.
        chain: the server's private key and certificate, PEM.
        trust_store: the authority as Java trusts it, PKCS12.
    """

    __test__ = False  # not a test class, whatever pytest thinks of the name

    server: ssl.SSLContext
    ca_file: Path
    chain: Path
    trust_store: Path

    @property
    def java_options(self) -> list[str]:
        """For a JVM that trusts this authority and no other."""
        return [
            f"-Djavax.net.ssl.trustStore={self.trust_store}",
            f"-Djavax.net.ssl.trustStorePassword={TRUST_PASSWORD}",
            "-Djavax.net.ssl.trustStoreType=PKCS12",
        ]


def pem_of(key: Any) -> bytes:
    """A private key as a PEM file has it, without a password."""
    made: bytes = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return made


def self_signed(file: Path) -> RSAPublicKey:
    """Writes an RSA key and a certificate of its own, as an application logs in with; gives the public key."""
    key = rsa.generate_private_key(65537, 2048)
    name = _name("an application")
    certificate = _builder(name, name, key).sign(key, hashes.SHA256())
    secret_file(file, pem_of(key) + certificate.public_bytes(serialization.Encoding.PEM))
    return key.public_key()


def make_authority(folder: Path, *names: str) -> TestAuthority:
    """Makes an authority and a server's certificate, both strict enough for Python 3.13.

    Args:
        folder: gets ca.pem, server.pem and trust.p12.
        names: DNS names of the server beside 127.0.0.1.
    """
    ca_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = _name("test authority")
    ca_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        _builder(ca_name, ca_name, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(ca_id, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    alternatives = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *map(x509.DNSName, names)]
    server = (
        _builder(_name("test server"), ca_name, server_key)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_id), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    return _written(folder, ca, server, server_key)


@dataclass(frozen=True)
class ClientCertificate:
    """A client's own certificate, which vouches for itself, and its private key; both PEM files."""

    file: Path
    key_file: Path


def make_client_certificate(
    folder: Path, name: str = "client", kind: Literal["EC", "RSA", "Ed25519"] = "EC"
) -> ClientCertificate:
    """Makes NAME.pem and NAME-key.pem (PKCS #8), over those there are."""
    key: AnyKey
    if kind == "RSA":
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    elif kind == "EC":
        key = ec.generate_private_key(ec.SECP256R1())
    else:
        key = ed25519.Ed25519PrivateKey.generate()
    public = key.public_key()
    key_id = x509.SubjectKeyIdentifier.from_public_key(public)
    certificate = (
        _builder(_name(name), _name(name), key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(key_id, critical=False)
        .sign(key, None if kind == "Ed25519" else hashes.SHA256())
    )
    made = ClientCertificate(folder / f"{name}.pem", folder / f"{name}-key.pem")
    made.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret_file(made.key_file, pem_of(key))
    return made


def _written(
    folder: Path,
    ca: x509.Certificate,
    server: x509.Certificate,
    server_key: ec.EllipticCurvePrivateKey,
) -> TestAuthority:
    ca_file, chain, trust_store = (folder / name for name in ("ca.pem", "server.pem", "trust.p12"))
    ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    secret_file(chain, pem_of(server_key) + server.public_bytes(serialization.Encoding.PEM))
    trust_store.write_bytes(
        serialize_java_truststore(
            [PKCS12Certificate(ca, b"test-authority")],
            serialization.BestAvailableEncryption(TRUST_PASSWORD.encode()),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return TestAuthority(context, ca_file, chain, trust_store)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: AnyKey) -> x509.CertificateBuilder:
    now = datetime.now(timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )
