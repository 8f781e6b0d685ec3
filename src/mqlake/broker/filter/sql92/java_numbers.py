"""Parse numbers as Java does: what it accepts, and what it refuses.

Upstream compares a property with a number by `Integer.valueOf`, `Long.valueOf` or `Double.valueOf`,
depending on the number in the expression.
"""

from __future__ import annotations

import math
import re

_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEX = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_NAMED = re.compile(r"([+-]?)(NaN|Infinity)")
_SAFE_DIGITS = 10
"""The number of digits that no limit allows."""
_TRIMMED = "".join(map(chr, range(0x21)))


class NotComparableError(ValueError):
    """Values that upstream fails to compare, such as a text that is not a number."""


def parse_int(text: str) -> int:
    """Return what `Integer.valueOf` does.

    Raises:
        NotComparableError: anything but digits and a sign, or beyond 32 bits.
    """
    return _integer(text, 1 << 31)


def parse_long(text: str) -> int:
    """Return what `Long.valueOf` does.

    Raises:
        NotComparableError: anything but digits and a sign, or beyond 64 bits.
    """
    return _integer(text, 1 << 63)


def _integer(text: str, limit: int) -> int:
    if len(text) < _SAFE_DIGITS and text.isdecimal():
        return int(text)
    if not _INTEGER.fullmatch(text):
        raise NotComparableError(f"{text!r} is not a number of that kind")
    try:
        value = int(text)
    except ValueError:  # These are more digits than Python parses in one call.
        raise NotComparableError(f"{text!r} is not a number of that kind") from None
    if not -limit <= value < limit:
        raise NotComparableError(f"{text!r} is not a number of that kind")
    return value


def parse_double(text: str) -> float:
    """Return what `Double.valueOf` does.

    Raises:
        NotComparableError: the text is not a number.
    """
    text = text.strip(_TRIMMED)
    if match := _DECIMAL.fullmatch(text):
        return float(match[1])
    if match := _NAMED.fullmatch(text):
        return math.nan if match[2] == "NaN" else float(match[1] + "inf")
    if match := _HEX.fullmatch(text):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    raise NotComparableError(f"{text!r} is not a number of that kind")


def order(left: float, right: float) -> int:
    """Return a negative number, 0, or a positive number, as `compareTo` does: NaN is last, -0.0
    before 0.0.
    """
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right and left != 0:
        return 0
    return _rank(left) - _rank(right)


def _rank(value: float) -> int:
    if math.isnan(value):
        return 2
    return 1 if value == 0 and math.copysign(1, value) > 0 else 0
