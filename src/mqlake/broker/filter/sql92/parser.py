"""Compile a SQL92 expression to a filter over properties (docs/filters.md).

Upstream: `SelectorParser.jj`, which ignores whatever follows the first expression; here an
expression is understood to its end, or refused.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NoReturn, ParamSpec

from mqlake.broker.filter.sql92 import comparisons, terms
from mqlake.broker.filter.sql92.comparisons import COMPARISONS, SEARCHES, NotAllowedError
from mqlake.broker.filter.sql92.java_numbers import NotComparableError, parse_long
from mqlake.broker.filter.sql92.terms import Evaluate, Term, ValueType
from mqlake.broker.filter.sql92.tokens import Token, error, tokenize

P = ParamSpec("P")

MAX_DEPTH = 100
"""Maximum depth of nested terms."""

_LITERALS = {
    "TRUE": terms.constant(ValueType.BOOLEAN, True),
    "FALSE": terms.constant(ValueType.BOOLEAN, False),
    "NULL": terms.constant(ValueType.UNKNOWN, None),
}


_MOST_COMPILED = 128
_compiled: OrderedDict[str, Evaluate] = OrderedDict()


def is_compiled(expression: str) -> bool:
    """Return whether an expression is already compiled."""
    return expression in _compiled


def compile_expression(expression: str) -> Evaluate:
    """Return a function that evaluates an expression: True if it selects a message.

    Otherwise it returns False or None, or raises a `NotComparableError`.

    Raises:
        ExpressionError: the text is not a condition in this language, or nested deeper than
            `MAX_DEPTH`.
    """
    evaluate = _compiled.get(expression)
    if evaluate is None:
        evaluate = _compiled[expression] = _Parser(expression).parse().evaluate
        if len(_compiled) > _MOST_COMPILED:
            _compiled.popitem(last=False)
    else:
        _compiled.move_to_end(expression)
    return evaluate


class _Parser:
    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = tokenize(expression)
        self._token = next(self._tokens)
        self._nested = 0

    def parse(self) -> Term:
        start = self._token
        term = self._condition(self._disjunction(), start)
        if self._token.kind != "end":
            self._fail("expected the end of the expression")
        return term

    # Tokens

    def _fail(self, reason: str, at: Token | None = None) -> NoReturn:
        raise error(self._expression, (at or self._token).at, reason)

    def _next(self) -> Token:
        token = self._token
        self._token = next(self._tokens) if token.kind != "end" else token
        return token

    def _takes(self, *kinds: str) -> Token | None:
        return self._next() if self._token.kind in kinds else None

    def _expect(self, kind: str, what: str) -> Token:
        return self._takes(kind) or self._fail(f"expected {what}")

    # Grammar, from the lowest precedence to the highest

    def _disjunction(self) -> Term:
        return self._joined("OR", self._conjunction, terms.disjunction)

    def _conjunction(self) -> Term:
        return self._joined("AND", self._equality, terms.conjunction)

    def _joined(
        self, word: str, part: Callable[[], Term], join: Callable[[list[Term]], Term]
    ) -> Term:
        start = self._token
        first = part()
        if self._token.kind != word:
            return first
        parts = [self._condition(first, start)]
        while self._takes(word):
            start = self._token
            parts.append(self._condition(part(), start))
        return self._made(start, join, parts)

    def _equality(self) -> Term:
        left = self._comparison()
        while token := self._takes("=", "<>", "IS"):
            left = self._equal(left, token)
        return left

    def _equal(self, left: Term, token: Token) -> Term:
        if token.kind == "IS":
            negated = self._takes("NOT") is not None
            self._expect("NULL", "NULL")
            made = self._made(token, comparisons.is_null, left)
        else:
            negated, right = token.kind == "<>", self._comparison()
            made = self._made(token, comparisons.equal, left, right)
        return self._made(token, terms.negation, made) if negated else made

    def _comparison(self) -> Term:
        left = self._unary()
        while True:
            start = self._token
            if token := self._takes(*COMPARISONS):
                left = self._made(start, comparisons.ordered, token.kind, left, self._unary())
                continue
            negated = self._takes("NOT") is not None
            if (token := self._takes("BETWEEN", "IN", *SEARCHES)) is None:
                if negated:
                    self._fail("expected BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH")
                return left
            left = self._test(left, token, negated)

    def _test(self, left: Term, word: Token, negated: bool) -> Term:
        if word.kind == "BETWEEN":
            low = self._unary()
            self._expect("AND", "AND")
            high = self._unary()
            make = comparisons.not_between if negated else comparisons.between
            return self._made(word, make, left, low, high)
        if word.kind == "IN":
            return self._made(word, comparisons.one_of, left, self._texts(), negated=negated)
        return self._made(word, comparisons.search, word.kind, left, self._text(), negated=negated)

    def _texts(self) -> list[str]:
        self._expect("(", "(")
        texts = [self._text()]
        while self._takes(","):
            texts.append(self._text())
        self._expect(")", ") or a comma")
        return texts

    def _text(self) -> str:
        return self._expect("text", "a text in single quotes").text

    def _unary(self) -> Term:
        self._nested += 1
        if self._nested > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels")
        try:
            if self._takes("+"):
                return self._unary()
            if token := self._takes("-"):
                return self._made(token, terms.negative, self._unary())
            if token := self._takes("NOT"):
                return self._made(token, terms.negation, self._condition(self._unary(), token))
            return self._primary()
        finally:
            self._nested -= 1

    def _primary(self) -> Term:
        token = self._next()
        if token.kind == "(":
            term = self._disjunction()
            self._expect(")", ")")
            return term
        if token.kind == "name":
            return terms.named_property(token.text)
        if token.kind == "text":
            return terms.constant(ValueType.TEXT, token.text)
        if token.kind == "int":
            return self._integer(token)
        if token.kind == "float":
            return self._float(token)
        return _LITERALS.get(token.kind) or self._fail("expected a property or a value", token)

    # Values

    def _integer(self, token: Token) -> Term:
        try:
            value = parse_long(token.text.rstrip("lL"))
        except NotComparableError:
            self._fail("a number exceeds 64 bits", token)
        return terms.constant(ValueType.INT if value < 1 << 31 else ValueType.LONG, value)

    def _float(self, token: Token) -> Term:
        value = float(token.text)
        # Upstream's range begins with the smallest double above 0.
        if not 0 < value < float("inf"):
            self._fail("a number is out of the range of positive doubles", token)
        return terms.constant(ValueType.DOUBLE, value)

    def _condition(self, term: Term, at: Token) -> Term:
        return terms.as_condition(term) or self._fail("expected a condition", at)

    def _made(self, at: Token, make: Callable[P, Term], *args: P.args, **kwargs: P.kwargs) -> Term:
        try:
            term = make(*args, **kwargs)
        except NotAllowedError as reason:
            self._fail(str(reason), at)
        if term.depth > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels", at)
        return term
