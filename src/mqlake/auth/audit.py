"""The audit log: refused and allowed requests, no more lines than a person can read."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from mqlake.remoting.shares import owner_of

AUDIT: Final = logging.getLogger("mqlake.auth.audit")
"""Who was let in, at level DEBUG, and who was refused, at level INFO."""

WINDOW: Final = 10.0
"""Seconds."""
MOST: Final = 200
"""Maximum lines about refusals in a window; further ones are only counted."""
MOST_OF_ONE: Final = 20
"""The same for one address, so that a stranger does not hide what others try."""


class _Refusals(logging.Filter):
    """Drops lines about refusals if they are many, and logs how many were dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._begin, self._logged, self._dropped = 0.0, 0, 0
        # At most as many addresses as there are lines.
        self._of_one: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a line. Only lines of `refused` are limited."""
        source: str | None = getattr(record, "refused_from", None)
        if source is None:
            return True
        if not 0 <= record.created - self._begin < WINDOW:
            dropped, self._dropped = self._dropped, 0
            self._begin, self._logged = record.created, 0
            self._of_one.clear()
            if dropped:
                AUDIT.info("[AUDIT] %d more refused requests were not logged", dropped)
        if self._logged >= MOST or self._of_one[source] >= MOST_OF_ONE:
            self._dropped += 1
            return False
        self._logged += 1
        self._of_one[source] += 1
        return True


_limit: Final = _Refusals()
AUDIT.addFilter(_limit)


def log_refusal(peer: str, line: str, *words: object) -> None:
    """Log that a request was refused, unless there were too many.

    Args:
        peer: "ip:port" of the other side.
        line: a format of `logging` for the words.
    """
    if AUDIT.isEnabledFor(logging.INFO):
        AUDIT.info(line, *words, extra={"refused_from": _source(peer)})


def _source(peer: str) -> str:
    try:
        return owner_of(peer)
    except ValueError:
        return ""
