"""From which addresses a list of ACL 1.0 accepts requests (upstream: `RemoteAddressStrategy`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from mqlake.auth.plain.ip_text import expanded, is_ip4, is_ip6, split
from mqlake.auth.plain.ranges import range_of
from mqlake.errors import FormatError

Matches = Callable[[str], bool]
"""Returns whether an address, without its port, is accepted."""

_EVERYWHERE: Final = ("*", "*.*.*.*", "*:*:*:*:*:*:*:*")
_IP4_PARTS: Final = 4


def addresses(text: str | None) -> Matches:
    """Return which addresses a text stands for, such as "10.1.0.*" or "fe80::{1,2}".

    Raises:
        FormatError: it is no such text.
    """
    if text is None or not text.strip():
        return _nowhere
    if text in _EVERYWHERE:
        return _everywhere
    if text.endswith("}"):
        return _several(_in_braces(text))
    if "," in text:
        return _several(split(text, ","))
    if "*" in text or "-" in text:
        return range_of(text)
    return _one(text)


def _nowhere(_address: str) -> bool:
    return False


def _everywhere(_address: str) -> bool:
    return True


def _in_braces(text: str) -> list[str]:
    """Return the addresses of a text that lists its last part: "10.0.0.{1,2}"."""
    is_ip6_text = ":" in text
    parts = split(text, ":" if is_ip6_text else ".")
    if (not is_ip6_text and len(parts) < _IP4_PARTS) or not parts[-1].startswith("{"):
        raise FormatError(f"{text!r}: only the last part of an address can be in braces")
    start = text[: text.index("{")]
    return [start + last for last in split(parts[-1][1:-1], ",")]


def _several(texts: Iterable[str]) -> Matches:
    found: set[str] = set()
    for text in texts:
        if is_ip4(text):
            found.add(text)
        elif is_ip6(text):
            found.add(expanded(text))
        else:
            raise FormatError(f"{text!r} is not an IP address")

    def matches(address: str) -> bool:
        return (expanded(address) if is_ip6(address) else address) in found

    return matches


def _one(text: str) -> Matches:
    if not (is_ip4(text) or is_ip6(text)):
        raise FormatError(f"{text!r} is not an IP address")
    wanted = expanded(text)

    def matches(address: str) -> bool:
        return expanded(address) == wanted

    return matches
