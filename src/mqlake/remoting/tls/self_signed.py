"""A self-signed certificate for tests, as RocketMQ's servers have without `tls.properties`.

Nobody can verify it: it protects against listening only.

Upstream: Netty's `SelfSignedCertificate`.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path
from typing import Final

from mqlake.errors import MqlakeError

_DAYS: Final = 3650
_NAME: Final = "localhost"


class SelfSigned:
    """A new certificate and its key, in files that exist while the block runs.

    Raises:
        MqlakeError: the package `cryptography` is not installed.
    """

    def __enter__(self) -> tuple[Path, Path]:
        certificate, key = _create()
        self._directory = tempfile.TemporaryDirectory(prefix="mqlake-tls-")
        paths = Path(self._directory.name, "cert.pem"), Path(self._directory.name, "key.pem")
        for path, data in zip(paths, (certificate, key), strict=True):
            path.touch(mode=0o600)
            path.write_bytes(data)
        return paths

    def __exit__(self, *failure: object) -> None:
        self._directory.cleanup()


def _create() -> tuple[bytes, bytes]:
    """Return a certificate and its key in PEM format."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise MqlakeError(
            "TLS: there is no certificate: set tls.server.certPath and tls.server.keyPath; or"
            " install the extra tls, which creates self-signed certificates for tests"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _NAME)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(pem), private
