"""Drawn texts of Java's `Properties`, with every form that a line may have."""

from __future__ import annotations

from random import Random

_PIECES = (
    *("a", "b", "name", "1s", "中", "é", "😀", "C:", "/x", "0"),
    *("=", ":", " ", "\t", "\f", "#", "!", "\\", "\\\\", "\\=", "\\:", "\\ ", "\\#"),
    *("\\t", "\\n", "\\r", "\\f", "\\u0041", "\\u4e2d", "\\uD83D\\uDE00", "\\x", '\\"'),
    *("\n", "\r\n", "\r", "\n", "\n", "\\\n", "\\\r\n", "\\\r", "\n#", "\n  !", "\n\n"),
)


def drawn(random: Random) -> str:
    """Return a text in which each piece may follow each."""
    return "".join(random.choices(_PIECES, k=random.randint(0, 40)))
