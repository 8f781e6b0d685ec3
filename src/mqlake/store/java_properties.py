"""Texts of Java's `Properties`: `broker.conf`, and bodies of requests with settings.

A line is `name=value`, `name: value` or `name value`. `#` and `!` begin a comment, a backslash at
the end continues a line, and `\\t`, `\\n`, `\\f`, `\\r` and `\\uXXXX` are characters. If a name
occurs twice, its last value counts.

Blanks around a value are removed, as RocketMQ does before it uses one.

Upstream: `java.util.Properties.load`, `MixAll.properties2Object`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mqlake.errors import FormatError

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_BLANKS = " \t\f"
_TRIMMED = "".join(map(chr, range(33)))
"""What Java's `String.trim` removes."""

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.|\Z)", re.DOTALL)
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_PLAIN = range(32, 127)


class LogicalLine(NamedTuple):
    """A logical line: with all lines that continue it.

    Attributes:
        number: of its first line, from 1 on.
        raw: the text, with the ends of lines.
        name, value: None for comments and blank lines.
    """

    number: int
    raw: str
    name: str | None
    value: str | None


def lines(text: str, *, is_strict: bool = True) -> Iterator[LogicalLine]:
    """Yield the logical lines of a text.

    Args:
        is_strict: whether a malformed escape is an error, as in Java; otherwise it stays as it is.

    Raises:
        FormatError: `\\u` is followed by something other than four hexadecimal digits.
    """
    raw, joined, first = "", "", 0
    for number, line in enumerate(_natural_lines(text), 1):
        bare = line.rstrip("\r\n")
        body = bare.lstrip(_BLANKS)
        if not joined:
            first = first if raw else number
            if not body or body[0] in "#!":
                yield LogicalLine(first, raw + line, None, None)
                raw = ""
                continue
        raw += line
        if _continues(body):
            joined += body[:-1]
            continue
        yield _line(first, raw, joined + body, is_strict)
        raw = joined = ""
    if raw:  # The text ends with a backslash. If it stands alone, it is a name to Java.
        is_name = not joined and not raw.endswith("\r\n")
        yield LogicalLine(first, raw, "", "") if is_name else _line(first, raw, joined, is_strict)


def parse(text: str, *, is_strict: bool = True) -> dict[str, str]:
    """Return the values by name.

    Raises:
        FormatError: as for `lines`.
    """
    return {
        line.name: line.value
        for line in lines(text, is_strict=is_strict)
        if line.name is not None and line.value is not None
    }


def written(name: str, value: str) -> str:
    """Return a line, without its end, that Java and `lines` read as this name and value."""
    escaped = "".join(map(_escaped, value))
    if escaped[:1] == " ":
        escaped = f"\\{escaped}"
    return f"{_written_name(name)}={escaped}"


def text_of(values: Iterable[tuple[str, str]]) -> str:
    """Return lines of names and values."""
    return "".join(f"{written(name, value)}\n" for name, value in values)


def _natural_lines(text: str) -> Iterator[str]:
    for found in _LINE.finditer(text):
        if found[0]:
            yield found[0]


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _line(number: int, raw: str, joined: str, is_strict: bool) -> LogicalLine:
    if not joined:
        return LogicalLine(number, raw, None, None)
    try:
        name, value = map(_unescaped, _divided(joined))
    except FormatError as error:
        if is_strict:
            raise FormatError(f"line {number}: {error}") from None
        name, value = _divided(joined)
    return LogicalLine(number, raw, name, value.strip(_TRIMMED))


def _divided(joined: str) -> tuple[str, str]:
    """Return the name and the value of a line: `=`, `:` or blanks are between them."""
    at = 0
    while at < len(joined) and joined[at] not in f"=:{_BLANKS}":
        at += 2 if joined[at] == "\\" else 1
    name, rest = joined[:at], joined[at:].lstrip(_BLANKS)
    return name, rest[1:].lstrip(_BLANKS) if rest[:1] in ("=", ":") else rest


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def character(found: re.Match[str]) -> str:
        escape = found[1]
        if escape == "u":
            raise FormatError(
                "\\u must be followed by four hexadecimal digits; write a backslash as \\\\"
            )
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _CONTROLS.get(escape, escape)

    found = _ESCAPE.sub(character, text)
    # Java writes a character outside of the basic plane as two.
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), found)


def _escaped(character: str) -> str:
    if ord(character) in _PLAIN and character != "\\":
        return character
    if character in _WRITTEN:
        return _WRITTEN[character]
    units = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _written_name(name: str) -> str:
    escaped = "".join(
        f"\\{character}" if character in " =:" else _escaped(character) for character in name
    )
    return f"\\{escaped}" if escaped[:1] in ("#", "!") else escaped
