"""The options that say how a client reaches servers: encrypted or not, and as which user.

Everything that is configured by texts has them: the command line, its environment variables, and
Spark's options. This module imports nothing that makes a command line start later.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class AccessOption(NamedTuple):
    """One option.

    Attributes:
        name: the name, as of an option of Spark.
        meaning: a sentence for help and tables.
        values: the allowed texts; empty for any.
        is_secret: whether the value must not be shown or be part of a command line.
    """

    name: str
    meaning: str
    values: tuple[str, ...] = ()
    is_secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that is used if the option is not given."""
        return "MQLAKE_" + re.sub(r"(?=[A-Z])", "_", self.name).upper()

    @property
    def flag(self) -> str:
        """The option on a command line."""
        return "--" + re.sub(r"(?=[A-Z])", "-", self.name).lower()


TLS: Final = AccessOption(
    "tls",
    "Use TLS to name servers and brokers; implied by the other options about TLS.",
    ("true", "false"),
)
CA: Final = AccessOption(
    "tlsCa", "File with the certificates of trusted authorities (PEM); default: the system's."
)
CERT: Final = AccessOption("tlsCert", "File with the certificate to present (PEM).")
KEY: Final = AccessOption("tlsKey", "File with the private key of that certificate (PEM).")
KEY_PASSWORD: Final = AccessOption(
    "tlsKeyPassword", "Password of that private key, if it is encrypted.", is_secret=True
)
VERIFY: Final = AccessOption(
    "tlsVerify",
    "What a server's certificate must have: a trusted signature and the server's name (full, the "
    "default), a trusted signature (ca), or nothing (none: for tests).",
    ("full", "ca", "none"),
)
ACCESS_KEY: Final = AccessOption("accessKey", "The user in whose name requests are signed.")
SECRET_KEY: Final = AccessOption("secretKey", "The password of that user.", is_secret=True)

OF_TLS: Final = (CA, CERT, KEY, KEY_PASSWORD, VERIFY)
OPTIONS: Final = (TLS, *OF_TLS, ACCESS_KEY, SECRET_KEY)
