"""Evaluate a condition for messages, a slice at a time.

A slice ends after `SLICE` seconds with an error. What was decided is kept, so whoever reads the
messages again in the next slice gets further.
"""

from __future__ import annotations

from time import perf_counter

from mqlake.broker.filter.sql92.interrupting import (
    InterruptedEvaluationError,
    InterruptibleProperties,
)
from mqlake.broker.filter.subscriptions import Choice
from mqlake.formats.record import Record

SLICE = 0.003
"""Seconds after which others are served."""
_LARGE = 512
"""Characters of the properties' values from which one evaluation may take longer than a slice."""


class UndecidedError(Exception):
    """The slice is used up; let others be served, then call `Verdicts.resume` and read again."""


class Verdicts:
    """Whether a condition holds for the messages that one request reads.

    The first slice begins now.
    """

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._known: dict[int, bool] = {}
        # The message whose evaluation was interrupted, and its offset in the log.
        self._interrupted: InterruptibleProperties | None = None
        self._at = -1
        self.resume()

    def resume(self) -> None:
        """Begin a slice."""
        self._until, self._is_fresh = perf_counter() + SLICE, True

    def holds(self, record: Record) -> bool:
        """Return whether the condition holds for a message.

        At least one message, or a part of its evaluation, is decided in each slice.

        Raises:
            UndecidedError: the slice is used up.
        """
        if self._choice.condition is None:
            return True
        at = record.physical_offset
        known = self._known.get(at)
        if known is not None:
            return known
        if not self._is_fresh and perf_counter() >= self._until:
            raise UndecidedError
        self._is_fresh = False
        properties = record.properties
        if sum(map(len, properties.values())) >= _LARGE:
            properties = self._interruptible(record)
        try:
            holds = self._choice.holds(properties)
        except InterruptedEvaluationError:
            raise UndecidedError from None
        self._known[at] = holds
        return holds

    def _interruptible(self, record: Record) -> InterruptibleProperties:
        """Return the properties of a message, with the results of an interrupted evaluation."""
        found = self._interrupted
        if found is None or self._at != record.physical_offset:
            found = InterruptibleProperties(record.properties, self._until)
            self._interrupted, self._at = found, record.physical_offset
        found.resume(self._until)
        return found
