"""A condition and a message whose evaluation takes long, and slices of one comparison each."""

from __future__ import annotations

import pytest

from mqlake.broker.filter import verdicts

TERMS = 20
CONDITION = " OR ".join(f"a CONTAINS '{number:02}b'" for number in range(TERMS))
LARGE = {"a": "a" * 2000}
CHOSEN = {"a": "a" * 2000 + f"{TERMS - 1:02}b"}


def count_slices(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """End a slice after each comparison; return a list that gets an item for each slice."""
    found: list[None] = []
    resume = verdicts.Verdicts.resume

    def counted(self: verdicts.Verdicts) -> None:
        found.append(None)
        resume(self)

    monkeypatch.setattr(verdicts, "SLICE", 0)
    monkeypatch.setattr(verdicts.Verdicts, "resume", counted)
    return found
