"""An authority of the test's own, and the certificates that it signs."""

from __future__ import annotations

import datetime as dt
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PEM = serialization.Encoding.PEM
_BEGIN = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_END = dt.datetime(2200, 1, 1, tzinfo=dt.UTC)

_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


class Files(NamedTuple):
    cert: str
    key: str


class Authority:
    """Signs certificates; its own one is in `ca`."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory, self._number = directory, count(1)
        self._key, self._name = ec.generate_private_key(ec.SECP256R1()), _named(name)
        own = _builder(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        own = own.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        # From Python 3.13 on, the default context demands which keys may sign certificates.
        usage = dict.fromkeys(_USAGES, False) | {"key_cert_sign": True, "crl_sign": True}
        own = own.add_extension(x509.KeyUsage(**usage), critical=True)
        self.ca = str(directory / f"{name}.pem")
        Path(self.ca).write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(PEM))

    def sign(self, name: str, *hosts: str, password: str = "") -> Files:
        """Write a new key, and a certificate for these host names and addresses."""
        certificate, key = self.signed(name, *hosts, password=password)
        # A server may still use the files of an earlier call.
        stem = f"{name}-{next(self._number)}"
        paths = self._directory / f"{stem}.crt", self._directory / f"{stem}.key"
        paths[0].write_bytes(certificate)
        paths[1].write_bytes(key)
        return Files(*map(str, paths))

    def settings(self, *, client_auth: bool = False) -> dict[str, object]:
        """Return settings of a server on 127.0.0.1 that uses only TLS.

        Args:
            client_auth: whether clients need a certificate of this authority.
        """
        files = self.sign("server", "127.0.0.1")
        given: dict[str, object] = {
            "tls.server.mode": "enforcing",
            "tls.server.certPath": files.cert,
            "tls.server.keyPath": files.key,
            "tls.enable": True,
            "tls.client.trustCertPath": self.ca,
        }
        if client_auth:
            given |= {
                "tls.server.authClient": True,
                "tls.server.need.client.auth": "require",
                "tls.server.trustCertPath": self.ca,
                "tls.client.certPath": files.cert,
                "tls.client.keyPath": files.key,
            }
        return given

    def signed(self, name: str, *hosts: str, password: str = "") -> tuple[bytes, bytes]:
        """Return a certificate and its key, in PEM format."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_host(host) for host in hosts or ("localhost",)])
        own = _builder(_named(name), self._name, key).add_extension(names, critical=False)
        own = own.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
            critical=False,
        )
        encryption = (
            serialization.BestAvailableEncryption(password.encode())
            if password
            else serialization.NoEncryption()
        )
        private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, encryption)
        return own.sign(self._key, hashes.SHA256()).public_bytes(PEM), private


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
    )
