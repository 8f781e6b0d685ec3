"""Split a filter expression into tokens.

Upstream: the token part of `SelectorParser.jj`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mqlake.errors import FormatError

_SHOWN = 80


class ExpressionError(FormatError):
    """A filter expression that cannot be compiled."""


class Token(NamedTuple):
    """One token: its kind, its text (words in upper case), and where it begins in characters.

    A kind is `text`, `float`, `int`, `name`, `end`, or the token itself: a symbol, a word.
    """

    kind: str
    text: str
    at: int


_LITERALS = ("TRUE", "FALSE", "NULL")
_OPERATORS = ("NOT", "AND", "OR", "BETWEEN", "IN", "IS", "CONTAINS", "STARTSWITH", "ENDSWITH")
_WORDS = frozenset((*_LITERALS, *_OPERATORS))

# A comment at the end needs no line end: upstream stops reading there, which has the same result.
_TOKEN = re.compile(
    r"""(?P<skip>[ \t\n\r\f]+|--[^\n\r]*|/\*.*?\*/)
    |(?P<text>'(?:''|[^'])*')
    |(?P<float>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<int>0|[1-9][0-9]*[lL]?)
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<symbol><>|>=|<=|[=<>(),+-])""",
    re.VERBOSE | re.DOTALL,
)


def tokenize(expression: str) -> Iterator[Token]:
    """Yield the tokens of an expression, and finally one of the kind `end`.

    Raises:
        ExpressionError: a character begins no token.
    """
    at = 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise error(expression, at, f"unexpected character {expression[at]!r}")
        kind, text = match.lastgroup or "", match[0]
        if kind != "skip":
            yield _token(kind, text, at)
        at = match.end()
    yield Token("end", "", at)


def _token(kind: str, text: str, at: int) -> Token:
    if kind == "text":
        return Token(kind, text[1:-1].replace("''", "'"), at)
    word = text.upper()
    if kind == "symbol" or (kind == "name" and word in _WORDS):
        return Token(word, word, at)
    return Token(kind, text, at)


def error(expression: str, at: int, reason: str) -> ExpressionError:
    """Return the error of an expression: what is wrong, at which character, in which expression."""
    shown = expression if len(expression) <= _SHOWN else expression[:_SHOWN] + "…"
    return ExpressionError(f"filter expression {shown!r}, character {at + 1}: {reason}")
