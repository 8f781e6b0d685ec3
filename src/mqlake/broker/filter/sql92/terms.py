"""The parts of expressions: constants, properties, and their combinations.

A term computes its value from a message's properties. As in SQL, a value may be unknown (None), and
most results of unknown values are unknown, too. Upstream: `ConstantExpression`,
`PropertyExpression`, `UnaryExpression`, `LogicExpression`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Value = str | float | bool | None
"""A text, a number, a truth value; None if it is unknown."""

Evaluate = Callable[[Mapping[str, str]], Value]


class ValueType(enum.Enum):
    """The kind of a term's values, if it is known: Java's types."""

    TEXT = enum.auto()
    INT = enum.auto()
    LONG = enum.auto()
    DOUBLE = enum.auto()
    BOOLEAN = enum.auto()
    UNKNOWN = enum.auto()
    """The value is always unknown."""


NUMBERS = frozenset((ValueType.INT, ValueType.LONG, ValueType.DOUBLE))


@dataclass(frozen=True, slots=True)
class Term:
    """A part of an expression.

    Attributes:
        evaluate: computes the value. It raises `NotComparableError` if upstream raises; such a
            message is not selected.
        is_constant: whether it is a literal of the expression.
        is_property: whether it is the name of a property.
        is_boolean: whether it may be used as a condition.
        value: the value of a constant.
        depth: the depth of nested terms.
    """

    kind: ValueType
    evaluate: Evaluate
    is_constant: bool = False
    is_property: bool = False
    is_boolean: bool = False
    value: Value = None
    depth: int = 1


def constant(kind: ValueType, value: Value) -> Term:
    """Return the term of a literal."""
    is_boolean = kind in (ValueType.BOOLEAN, ValueType.UNKNOWN)
    return Term(kind, lambda _: value, is_constant=True, is_boolean=is_boolean, value=value)


def named_property(name: str) -> Term:
    """Return the term of a property's name."""
    return Term(ValueType.TEXT, lambda properties: properties.get(name), is_property=True)


def condition(evaluate: Evaluate, *parts: Term) -> Term:
    """Return a term that is true, false or unknown."""
    depth = 1 + max(part.depth for part in parts)
    return Term(ValueType.BOOLEAN, evaluate, is_boolean=True, depth=depth)


def negative(term: Term) -> Term:
    """Return `-term`; it is unknown unless the term is a number."""
    inner = term.evaluate
    if term.kind in NUMBERS:

        def evaluate(properties: Mapping[str, str]) -> Value:
            value = inner(properties)
            return -value if isinstance(value, (int, float)) else None

        return Term(term.kind, evaluate, depth=term.depth + 1)

    def unknown(properties: Mapping[str, str]) -> Value:
        inner(properties)  # It may raise.
        return None

    return Term(ValueType.UNKNOWN, unknown, depth=term.depth + 1)


def as_condition(term: Term) -> Term | None:
    """Return a term that can be used as a condition, None if it cannot.

    A property can, and is false if the message has it: its value is a text, not TRUE.
    """
    if term.is_boolean:
        return term
    if not term.is_property:
        return None
    inner = term.evaluate
    return condition(lambda properties: None if inner(properties) is None else False, term)


def negation(term: Term) -> Term:
    """Return NOT of a condition."""
    inner = term.evaluate

    def evaluate(properties: Mapping[str, str]) -> Value:
        value = inner(properties)
        return None if value is None else not value

    return condition(evaluate, term)


def conjunction(terms: Sequence[Term]) -> Term:
    """Return AND of conditions: false if one is false, otherwise unknown if one is unknown."""
    parts = [term.evaluate for term in terms]

    def evaluate(properties: Mapping[str, str]) -> Value:
        result: Value = True
        for part in parts:
            value = part(properties)
            if value is None:
                result = None
            elif not value:
                return False
        return result

    return condition(evaluate, *terms)


def disjunction(terms: Sequence[Term]) -> Term:
    """Return OR of conditions: true if one is true, otherwise unknown if one is unknown."""
    parts = [term.evaluate for term in terms]

    def evaluate(properties: Mapping[str, str]) -> Value:
        result: Value = False
        for part in parts:
            value = part(properties)
            if value is None:
                result = None
            elif value:
                return True
        return result

    return condition(evaluate, *terms)
