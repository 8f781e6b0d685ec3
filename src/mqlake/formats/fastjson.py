"""Read and write the JSON dialect of RocketMQ's configuration (docs/formats/fastjson.md).

fastjson writes maps with integer keys as `{0:14,1:9}`, which is no JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, cast

from mqlake.errors import FormatError
from mqlake.formats import java_string

MAX_DEPTH = 100
MAX_DIGITS = 400

_SPACE = re.compile(r"[ \t\r\n\f\b]*")
_COMMAS = re.compile(r"[ \t\r\n\f\b,]*")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_WORDS = {"true": True, "false": False, "null": None}
_PLAIN = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_HEX = {"u": 4, "x": 2}
_HEX_DIGITS = re.compile(r"[0-9A-Fa-f]+")
_ESCAPES = {
    "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "F": "\f",
    **{letter: letter for letter in "\"'\\/"},
    **{str(digit): chr(digit) for digit in range(8)},
}  # fmt: skip
_SURROGATES = re.compile("[\ud800-\udfff]")

_QUOTED = re.compile(r'["\\\x00-\x1f\x7f\u2028\u2029]')
_QUOTES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


class Encoded(NamedTuple):
    """The text of a value; `dumps` takes it over as it is."""

    text: str


def loads(data: bytes) -> object:
    """Return the first value in `data`; objects become dicts whose integer keys are int.

    Besides JSON: integers, plain words and objects as keys, single quotes, stray commas, Java's
    escapes, malformed UTF-8 (replaced), and anything after the value. Of equal keys the last wins.
    A key that is an object becomes its own text.

    Raises:
        FormatError: no value, values nested deeper than 100, or a number of over 400 digits; the
            message has the position in characters.
    """
    return _Reader(java_string.decode(data)).read()


def dumps(value: object, *, pretty: bool = True) -> str:
    """Return the text fastjson's pretty format has: tabs, integer keys unquoted.

    `value` is made of dicts, lists, strings, numbers, booleans, None, and `Encoded` values. Not
    `pretty` is the same in one line without blanks.

    Raises:
        FormatError: another type, or values nested deeper than 100.
    """
    parts: list[str] = []
    _write(value, "\n" if pretty else "", parts.append, 0)
    return "".join(parts)


def encode_member(name: str, value: object, depth: int) -> str:
    """Return the pretty text of a member of an object, for `join_members`.

    Args:
        depth: how many objects and lists the object is in.

    Raises:
        FormatError: as `dumps`.
    """
    parts = [_scalar(name), ":"]
    _write(value, "\n" + "\t" * (depth + 1), parts.append, depth + 1)
    return "".join(parts)


def join_members(members: Iterable[str], depth: int) -> Encoded:
    """Return the object with these members, which `dumps` will find within so many others."""
    line = "\n" + "\t" * depth
    text = f",{line}\t".join(members)
    return Encoded(f"{{{line}\t{text}{line}}}" if text else "{}")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> object:
        self._skip(_SPACE)
        return self._value(0)

    def _fail(self, reason: str) -> FormatError:
        return FormatError(f"{reason} at character {self._at}")

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Go past what the pattern matches; return the next character, "" at the end."""
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> object:
        first = self._text[self._at : self._at + 1]
        if first in _PLAIN:
            return self._string(first)
        if first == "{" or first == "[":
            if depth == MAX_DEPTH:
                raise self._fail(f"values are nested deeper than {MAX_DEPTH} levels")
            self._at += 1
            return self._object(depth + 1) if first == "{" else self._array(depth + 1)
        word = _WORD.match(self._text, self._at)
        if word and word[0] in _WORDS:
            self._at = word.end()
            return _WORDS[word[0]]
        return self._number()

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        if not match:
            raise self._fail("no value")
        if len(match[0]) > MAX_DIGITS:
            raise self._fail("a number is too long")
        self._at = match.end()
        return float(match[0]) if match[1] or match[2] else int(match[0])

    def _string(self, quote: str) -> str:
        start = self._at
        self._at += 1
        parts: list[str] = []
        while True:
            match = _PLAIN[quote].match(self._text, self._at)
            if match:
                parts.append(match[0])
                self._at = match.end()
            if self._at >= len(self._text):
                self._at = start
                raise self._fail("a string without an end")
            self._at += 1
            if self._text[self._at - 1] == quote:
                return _join_surrogates("".join(parts))
            parts.append(self._escape())

    def _escape(self) -> str:
        letter = self._text[self._at : self._at + 1]
        digits = self._text[self._at + 1 : self._at + 1 + _HEX.get(letter, 0)]
        if letter in _ESCAPES:
            self._at += 1
            return _ESCAPES[letter]
        if letter in _HEX and len(digits) == _HEX[letter] and _HEX_DIGITS.fullmatch(digits):
            self._at += 1 + len(digits)
            return chr(int(digits, 16))
        raise self._fail("an unknown escape")

    def _object(self, depth: int) -> dict[str | int, object]:
        found: dict[str | int, object] = {}
        while self._skip(_COMMAS) != "}":
            key = self._key(depth)
            if self._skip(_SPACE) != ":":
                raise self._fail("no colon after a key")
            self._at += 1
            self._skip(_SPACE)
            found[key] = self._value(depth)
            if self._skip(_SPACE) not in (",", "}"):
                raise self._fail("no comma or } after a value")
        self._at += 1
        return found

    def _key(self, depth: int) -> str | int:
        first = self._text[self._at : self._at + 1]
        if first in _PLAIN:
            return self._string(first)
        if first == "{":
            return dumps(self._value(depth), pretty=False)
        word = _WORD.match(self._text, self._at)
        if word:
            self._at = word.end()
            return word[0]
        number = self._number()
        if isinstance(number, int):
            return number
        raise self._fail("a key that is no integer before the end")

    def _array(self, depth: int) -> list[object]:
        found: list[object] = []
        while self._skip(_COMMAS) != "]":
            found.append(self._value(depth))
            if self._skip(_SPACE) not in (",", "]"):
                raise self._fail("no comma or ] after a value")
        self._at += 1
        return found


def _join_surrogates(text: str) -> str:
    """Make characters of escaped surrogate pairs, U+FFFD of halves."""
    if not _SURROGATES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _write(value: object, line: str, put: Callable[[str], object], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise FormatError(f"values are nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Encoded):
        put(value.text)
        return
    if isinstance(value, dict):
        brackets, pairs = "{}", list(cast("dict[object, object]", value).items())
    elif isinstance(value, list):
        brackets, pairs = "[]", [(None, item) for item in cast("list[object]", value)]
    else:
        put(_scalar(value))
        return
    inner = line and line + "\t"
    separator = brackets[0]
    for key, item in pairs:
        put(separator + inner)
        if brackets == "{}":
            put(_scalar(key) + ":")
        _write(item, inner, put, depth + 1)
        separator = ","
    put(line + brackets[1] if pairs else brackets)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return f'"{_QUOTED.sub(_quote, value)}"'
    if isinstance(value, (bool, type(None))):
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "null"
    raise FormatError(f"not a JSON value: {type(value).__name__}")


def _quote(match: re.Match[str]) -> str:
    return _QUOTES.get(match[0]) or f"\\u{ord(match[0]):04x}"
