"""Read and write a broker's id at the controller (docs/formats/epoch_file.md).

The controller gives each broker of a name an id of its own, which the broker keeps in
`brokerIdentity`; in `brokerIdentity-temp` while it applies for it.
Upstream: `BrokerMetadata`, `TempBrokerMetadata`.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlake.errors import FormatError

NAME = "brokerIdentity"
TEMPORARY_NAME = "brokerIdentity-temp"
LARGEST = 4096
"""Bytes of a file that is read at most."""
_LARGEST_ID = (1 << 63) - 1


class BrokerIdentity(NamedTuple):
    """Which broker of its name a store is.

    Attributes:
        check_code: only while the id is applied for: what proves to the controller, if the broker
            asks again, that it has given the id to this broker.
    """

    cluster: str
    name: str
    broker_id: int
    check_code: str = ""


def encode(identity: BrokerIdentity) -> bytes:
    """Return the content of the file."""
    parts = [identity.cluster, identity.name, str(identity.broker_id)]
    return "#".join(parts + ([identity.check_code] if identity.check_code else [])).encode()


def decode(data: bytes) -> BrokerIdentity:
    """Return what a file says.

    Raises:
        FormatError: the file is damaged.
    """
    parts = data.decode("utf-8", "replace").strip().split("#")
    if len(parts) not in (3, 4) or not all(parts):
        raise FormatError(f"not cluster#broker name#broker id: {data[:100]!r}")
    cluster, name, text, *code = parts
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) <= _LARGEST_ID:
        raise FormatError(f"not the id of a broker: {text[:50]!r}")
    return BrokerIdentity(cluster, name, int(text), *code)
