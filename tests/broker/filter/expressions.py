"""Random SQL92 expressions, most of them right, and properties to evaluate them with."""

from __future__ import annotations

import random

NAMES = ("a", "b", "c", "TAGS", "missing", "$_x1")
TEXTS = ("", "a", "abc", "it''s", "5", "5.5", "true", "FALSE", "键", "-7", " 5 ", "1e3")
SMALL = ("0", "1", "5", "-5", "5.5", "5.", ".5", "5e3", "1E-3", "5L", "0.0", "1e999")
LARGE = ("2147483647", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808")
NUMBERS = (*SMALL, *LARGE)
WRITTEN = ("5", "+5", "-5", "05", "5.5", " 5.5 ", "5.5f", "5e3", "0x1p3", "5L", "\u0665", "1_0")
NAMED = ("NaN", "nan", "Infinity", "-0", "0.0", "-0.0", "true", "TRUE", "false")
VALUES = ("", "a", "abc", "it's", "键", *WRITTEN, *NAMED, *LARGE, "3000000000")


def properties(chance: random.Random) -> dict[str, str]:
    """Return the properties of one message."""
    return {
        name: chance.choice(VALUES) for name in NAMES if name != "missing" and chance.random() < 0.8
    }


def expression(chance: random.Random, depth: int = 3) -> str:
    """Return an expression; many are refused."""
    if depth == 0 or chance.random() < 0.3:
        return _test(chance)
    one = expression(chance, depth - 1)
    shape = chance.randrange(6)
    if shape == 0:
        return f"NOT ({one})"
    if shape == 1:
        return f"({one}) {chance.choice(('=', '<>'))} ({expression(chance, depth - 1)})"
    word = chance.choice(("AND", "OR", "and", "Or"))
    return f"{one} {word} {expression(chance, depth - 1)}"


def _test(chance: random.Random) -> str:
    shape = chance.randrange(8)
    left = chance.choice(NAMES) if chance.random() < 0.8 else _operand(chance)
    maybe_not = chance.choice(("", " NOT"))
    if shape <= 2:
        symbol = chance.choice(("=", "<>", ">", ">=", "<", "<="))
        return f"{left}{chance.choice((' ', ''))}{symbol} {_operand(chance)}"
    if shape == 3:
        return f"{left} IS{maybe_not} NULL"
    if shape == 4:
        return f"{left}{maybe_not} BETWEEN {_operand(chance)} AND {_operand(chance)}"
    if shape == 5:
        texts = [f"'{chance.choice(TEXTS)}'" for _ in range(chance.randint(1, 6))]
        return f"{left}{maybe_not} IN ({', '.join(texts)})"
    if shape == 6:
        word = chance.choice(("CONTAINS", "STARTSWITH", "endswith"))
        return f"{left}{maybe_not} {word} '{chance.choice(TEXTS)}'"
    return f"{chance.choice(('', 'NOT '))}{left}"


def _operand(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.5:
        return chance.choice(NAMES)
    if kind < 0.9:
        return chance.choice(NUMBERS)
    if kind < 0.95:
        return f"'{chance.choice(TEXTS)}'"
    return chance.choice(("TRUE", "FALSE", "NULL", "-a", "+5", "- 5", "(a)", "-(a = 5)", "b /* */"))
