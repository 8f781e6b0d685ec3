"""Compare two terms; search for a text in one.

How two values compare depends on the kinds of their terms, which are known when an expression is
compiled. Upstream: `ComparisonExpression`, `UnaryExpression.createInExpression`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mqlake.broker.filter.sql92.interrupting import interruptible
from mqlake.broker.filter.sql92.java_numbers import (
    NotComparableError,
    order,
    parse_double,
    parse_int,
    parse_long,
)
from mqlake.broker.filter.sql92.terms import (
    NUMBERS,
    Term,
    Value,
    ValueType,
    condition,
    conjunction,
    disjunction,
)

_PARSE: dict[ValueType, Callable[[str], float]] = {
    ValueType.INT: parse_int,
    ValueType.LONG: parse_long,
    ValueType.DOUBLE: parse_double,
}

_Convert = Callable[[Any], Any]

_WHOLE = frozenset((ValueType.INT, ValueType.LONG))

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}

_SEARCH: dict[str, Callable[[str, str], bool]] = {
    "CONTAINS": operator.contains,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}

SEARCHES = frozenset(_SEARCH)
COMPARISONS = frozenset(_ORDERED)


class NotAllowedError(ValueError):
    """Terms that an expression must not compare; the message says why."""


def equal(left: Term, right: Term) -> Term:
    """Return `left = right`.

    Raises:
        NotAllowedError: one is NULL, or TRUE or FALSE is compared with another literal.
    """
    for term in (left, right):
        if term.is_constant and term.value is None:
            raise NotAllowedError("NULL equals nothing; use IS NULL")
    if left.is_constant and right.is_constant and left.is_boolean and not right.is_boolean:
        raise NotAllowedError("TRUE and FALSE cannot be compared with another literal")
    return _equal(left, right)


def is_null(term: Term) -> Term:
    """Return `term IS NULL`."""
    inner = term.evaluate
    return condition(lambda properties: inner(properties) is None, term)


def _equal(left: Term, right: Term) -> Term:
    first, second, same = left.evaluate, right.evaluate, _same(left.kind, right.kind)

    def evaluate(properties: Mapping[str, str]) -> Value:
        one, other = first(properties), second(properties)
        if one is None:
            # Two properties that the message lacks are equal.
            return True if other is None else None
        return False if other is None else same(one, other)

    return condition(interruptible(evaluate), left, right)


def _same(left: ValueType, right: ValueType) -> Callable[[Any, Any], bool]:
    if left is right or ValueType.UNKNOWN in (left, right):
        return operator.eq
    if left is ValueType.TEXT and right is ValueType.BOOLEAN:
        return lambda one, other: (one.lower() == "true") is other
    if left is ValueType.BOOLEAN and right is ValueType.TEXT:
        return _fail
    if ValueType.BOOLEAN in (left, right):
        return _differ
    first, second = _converter(left, right), _converter(right, left)

    def same(one: Any, other: Any) -> bool:
        one, other = first(one) if first else one, second(other) if second else other
        return order(one, other) == 0

    return same


def _differ(_one: object, _other: object) -> bool:
    return False


def _fail(_one: object, _other: object) -> bool:
    raise NotComparableError("TRUE and FALSE can be compared with a property only on its right")


def ordered(symbol: str, left: Term, right: Term) -> Term:
    """Return `left > right`, or with another symbol of `COMPARISONS`.

    Raises:
        NotAllowedError: one is a condition or a literal other than a number.
    """
    for term in (left, right):
        if term.is_boolean or (term.is_constant and term.kind not in NUMBERS):
            raise NotAllowedError(f"{symbol} compares only numbers and properties")
    first, second, holds = left.evaluate, right.evaluate, _ORDERED[symbol]
    convert_first = _converter(left.kind, right.kind)
    convert_second = _converter(right.kind, left.kind)
    is_whole = left.kind in _WHOLE or right.kind in _WHOLE
    are_whole = is_whole and ValueType.DOUBLE not in (left.kind, right.kind)

    def evaluate(properties: Mapping[str, str]) -> Value:
        one: Any = first(properties)
        if one is None:
            return None
        other: Any = second(properties)
        if other is None:
            return None
        if convert_first is not None:
            one = convert_first(one)
        if convert_second is not None:
            other = convert_second(other)
        return holds(one, other) if are_whole else holds(order(one, other), 0)

    return condition(interruptible(evaluate), left, right)


def _converter(kind: ValueType, other: ValueType) -> _Convert | None:
    """Return a function that makes a value of one kind comparable with another, None if none is
    needed.
    """
    if kind is ValueType.TEXT:
        return _PARSE.get(other, parse_double)
    return float if other is ValueType.DOUBLE and kind is not other else None


def between(term: Term, low: Term, high: Term) -> Term:
    """Return `term BETWEEN low AND high`.

    Raises:
        NotAllowedError: as for `ordered`; or both are numbers in the wrong order.
    """
    both = conjunction([ordered(">=", term, low), ordered("<=", term, high)])
    if low.is_constant and high.is_constant and _is_less(high.value, low.value):
        raise NotAllowedError(
            f"BETWEEN {low.value} AND {high.value}: the first must not be greater"
        )
    return both


def _is_less(one: Value, other: Value) -> bool:
    return isinstance(one, (int, float)) and isinstance(other, (int, float)) and one < other


def not_between(term: Term, low: Term, high: Term) -> Term:
    """Return `term NOT BETWEEN low AND high`.

    Raises:
        NotAllowedError: as for `ordered`.
    """
    return disjunction([ordered("<", term, low), ordered(">", term, high)])


def one_of(term: Term, texts: Sequence[str], *, negated: bool) -> Term:
    """Return `term [NOT] IN (texts)`.

    Raises:
        NotAllowedError: the term is not a property.
    """
    if not term.is_property:
        raise NotAllowedError("IN needs a property on its left")
    inner, chosen = term.evaluate, frozenset(texts)

    def evaluate(properties: Mapping[str, str]) -> Value:
        value = inner(properties)
        return None if value is None else (value in chosen) is not negated

    return condition(interruptible(evaluate), term)


def search(word: str, term: Term, text: str, *, negated: bool) -> Term:
    """Return `term [NOT] CONTAINS text`, or with another word of `SEARCHES`.

    False, negated or not, if the text is empty, or the term is unknown or not a text.
    """
    inner, finds = term.evaluate, _SEARCH[word]

    def evaluate(properties: Mapping[str, str]) -> Value:
        value = inner(properties) if text else None
        return isinstance(value, str) and finds(value, text) is not negated

    return condition(interruptible(evaluate), term)
