"""Ranges of addresses of ACL 1.0: "10.1.*.*", "10.1.2.3-9", "fe80::1-200:*".

Upstream: `RangeRemoteAddressStrategy`. Of an IPv4 range, the first `*` or `-` counts, and what
follows it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mqlake.auth.plain.ip_text import expanded, is_ip4, is_ip6, split
from mqlake.errors import FormatError

_IP4_PARTS: Final = 4
_LAST_BYTE: Final = 255
_LAST_PART: Final = 0xFFFF
_STEP: Final = 5
"""Characters of one part of an expanded IPv6 address, with its colon."""


def range_of(text: str) -> Callable[[str], bool]:
    """Return which addresses a range contains.

    Raises:
        FormatError: the text is no range.
    """
    return _ip6_range(text) if ":" in text else _ip4_range(text)


def _ip4_range(text: str) -> Callable[[str], bool]:
    parts = [part.strip() for part in split(text, ".")]
    if len(parts) != _IP4_PARTS:
        raise _wrong(text)
    for index in range(1, _IP4_PARTS):
        found = _limits(text, parts[index], 10, _LAST_BYTE)
        if found is not None and found[1] > 0:
            break
    else:
        raise _wrong(text)
    for part in parts[: index - 1]:
        if not 0 <= _number(text, part, 10) <= _LAST_BYTE:
            raise _wrong(text)
    head = "".join(f"{part}." for part in parts[:index])
    first, last = found

    def matches(address: str) -> bool:
        if not is_ip4(address) or not address.startswith(head):
            return False
        return first <= int(address.split(".")[index]) <= last

    return matches


def _ip6_range(text: str) -> Callable[[str], bool]:
    _check_ip6(text)
    parts = split(text, ":")
    for index in range(1, len(parts)):
        found = _limits(text, parts[index].strip(), 16, _LAST_PART)
        if found is not None and found[1] > 0:
            break
    else:
        raise _wrong(text)
    for part in split(expanded(text), ":")[: index - 1]:
        if not 0 <= _number(text, part, 16) <= _LAST_PART:
            raise _wrong(text)
    head = _head(text)
    at, (first, last) = _STEP * len(split(head, ":")), found

    def matches(address: str) -> bool:
        if not is_ip6(address):
            return False
        whole = expanded(address)
        return whole.startswith(head) and first <= int(whole[at : at + 4], 16) <= last

    return matches


def _check_ip6(text: str) -> None:
    """Check that `*` is at the end, and `-` in the last part, or in the one before a `*`."""
    asterisk, minus, colon = text.find("*"), text.find("-"), text.rindex(":")
    if asterisk > -1 and asterisk != len(text) - 1:
        raise _wrong(text)
    if minus > -1:
        least = colon if asterisk == -1 else text.rfind(":", 0, colon)
        if minus <= least:
            raise _wrong(text)


def _head(text: str) -> str:
    """Return the parts before the range, expanded."""
    parts = 7
    start = text[: text.rindex(":")]
    if "*" in text and "-" in text:
        parts, colon = 6, start.rfind(":")
        if colon == -1:
            raise _wrong(text)
        start = start[:colon]
    return expanded(start, parts)


def _limits(text: str, part: str, base: int, most: int) -> tuple[int, int] | None:
    """Return the first and the last value of a part; None if it is no range."""
    if part == "*":
        return 0, most
    if "-" not in part:
        return None
    values = split(part, "-")
    if part.startswith("-") or len(values) < 2:
        raise _wrong(text)
    first, last = _number(text, values[0], base), _number(text, values[1], base)
    if not 0 <= first <= last <= most:
        raise _wrong(text)
    return first, last


def _number(text: str, part: str, base: int) -> int:
    try:
        return int(part, base)
    except ValueError:
        raise _wrong(text) from None


def _wrong(text: str) -> FormatError:
    return FormatError(f"{text!r} is no range of IP addresses")
