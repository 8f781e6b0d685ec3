"""Evaluate a costly expression in several attempts.

An expression of a few thousand characters may search the properties of a message hundreds of times,
which takes longer than others may wait. Its comparisons are the costly parts: each result is kept,
and the next attempt continues after the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")


class InterruptedEvaluationError(Exception):
    """The time of this attempt is used up; call again with the same properties."""


class InterruptibleProperties(dict[str, str]):
    """The properties of a message for which an expression is evaluated in attempts.

    Attributes:
        until: when this attempt ends, by `perf_counter`. It computes at least one result.
    """

    def __init__(self, properties: Mapping[str, str], until: float) -> None:
        super().__init__(properties)
        self.until = until
        self._results: dict[object, object] = {}

    def resume(self, until: float) -> None:
        """Begin another attempt."""
        self.until = until

    def result(self, evaluate: Callable[[Mapping[str, str]], T]) -> T:
        """Return the result of a comparison, which is computed once.

        Raises:
            InterruptedEvaluationError: the time of this attempt is used up.
        """
        results = self._results
        if evaluate in results:
            return results[evaluate]  # pyright: ignore[reportReturnType]
        value = results[evaluate] = evaluate(self)
        if perf_counter() >= self.until:
            raise InterruptedEvaluationError
        return value


def interruptible(evaluate: Callable[[Mapping[str, str]], T]) -> Callable[[Mapping[str, str]], T]:
    """Return a comparison whose results `InterruptibleProperties` keep."""

    def evaluate_once(properties: Mapping[str, str]) -> T:
        if type(properties) is InterruptibleProperties:
            return properties.result(evaluate)
        return evaluate(properties)

    return evaluate_once
