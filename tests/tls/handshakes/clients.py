"""Clients with a right certificate, with a wrong one and without any."""

from __future__ import annotations

import random
import ssl
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.tls.certificates import Authority

HOST = "127.0.0.1"
_TAMPERED = 40


class Clients:
    """The contexts of clients, of TLS 1.2 and 1.3.

    Attributes:
        right: of clients with a certificate that the server's authority has signed.
        wrong: of all others, by what is wrong.
    """

    def __init__(self, directory: Path, authority: Authority) -> None:
        files = authority.sign("client", HOST)
        foreign = Authority(directory, "foreign").sign("stranger", HOST)
        self._ca = authority.ca
        self.right = self._both(files.cert, files.key)
        self.wrong: Mapping[str, list[ssl.SSLContext]] = {
            "no certificate": self._both(),
            "a certificate of another authority": self._both(foreign.cert, foreign.key),
            "a changed certificate": self._tampered(directory, files.cert, files.key),
        }

    def _both(self, cert: str = "", key: str = "") -> list[ssl.SSLContext]:
        return [self._context(cert, key, each) for each in ("TLSv1_2", "TLSv1_3")]

    def _context(self, cert: str, key: str, version: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._ca)
        context.maximum_version = ssl.TLSVersion[version]
        if cert:
            context.load_cert_chain(cert, key)
        return context

    def _tampered(self, directory: Path, cert: str, key: str) -> list[ssl.SSLContext]:
        """Return contexts with certificates of which one byte is changed, and their right key."""
        chance, found = random.Random(39), list[ssl.SSLContext]()
        given = x509.load_pem_x509_certificate(Path(cert).read_bytes())
        data = given.public_bytes(Encoding.DER)
        path = directory / "tampered.crt"
        while len(found) < _TAMPERED:
            changed = bytearray(data)
            changed[chance.randrange(4, len(data))] ^= 1 << chance.randrange(8)
            path.write_text(ssl.DER_cert_to_PEM_cert(bytes(changed)))
            try:
                found.append(self._context(str(path), key, chance.choice(("TLSv1_2", "TLSv1_3"))))
            except ssl.SSLError:
                continue  # It is no certificate any more, or not of this key.
        return found
