"""IP addresses as ACL 1.0 compares them: as texts (upstream: `AclUtils`)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

PARTS: Final = 8
"""Parts of an IPv6 address."""
_WIDTH: Final = 4


def is_ip4(text: str) -> bool:
    """Return whether a text is an IPv4 address."""
    return _is(IPv4Address, text)


def is_ip6(text: str) -> bool:
    """Return whether a text is an IPv6 address."""
    return "%" not in text and _is(IPv6Address, text)


def _is(kind: type[IPv4Address | IPv6Address], text: str) -> bool:
    try:
        return isinstance(ip_address(text), kind)
    except ValueError:
        return False


def expanded(text: str, parts: int = PARTS) -> str:
    """Return the first parts of an IPv6 address in upper case, each with four digits.

    An IPv4 address is returned as it is.
    """
    text = text.upper()
    missing = parts - text.count(":")
    if missing > 0:
        text = text.replace("::", ":" * (missing + 1))
    return ":".join(part.rjust(_WIDTH, "0") for part in text.split(":"))


def split(text: str, separator: str) -> list[str]:
    """Return the parts of a text that are not empty."""
    return [part for part in text.split(separator) if part]
