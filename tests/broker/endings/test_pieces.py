"""What a consumer gets has a name."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.broker.endings.pieces import Messages, Outcome, Seen

MESSAGES = Messages(frozenset("a"), frozenset("bc"), frozenset("xy"))


@pytest.mark.parametrize(
    ("got", "outcome", "after_kill"),
    [
        ("xy", Outcome.ENDS, Outcome.ENDS),
        ("xybc", Outcome.KEPT, Outcome.AGAIN),
        ("xybbc", Outcome.KEPT, Outcome.AGAIN),
        ("xyabc", Outcome.ANEW, Outcome.AGAIN),
        ("xyb", Outcome.PART, Outcome.PART),
        ("xya", Outcome.PART, Outcome.PART),
        ("xxybc", Outcome.TWICE, Outcome.TWICE),
        ("xbc", Outcome.LOST, Outcome.LOST),
        ("", Outcome.LOST, Outcome.LOST),
    ],
)
def test_outcomes(got: str, outcome: Outcome, after_kill: Outcome) -> None:
    seen = Seen(MESSAGES, Counter(got))
    assert seen.outcome(may_repeat=False) is outcome
    assert seen.outcome(may_repeat=True) is after_kill


def test_what_nobody_consumed_is_not_repeated() -> None:
    seen = Seen(Messages(frozenset(), frozenset("bc"), frozenset("x")), Counter("bcx"))
    assert seen.outcome(may_repeat=True) is Outcome.KEPT


@pytest.mark.parametrize("outcome", [Outcome.ENDS, Outcome.KEPT, Outcome.ANEW])
def test_what_is_expected_is_what_is_seen(outcome: Outcome) -> None:
    seen = Seen(MESSAGES, Counter(MESSAGES.expected(outcome)))
    assert seen.outcome(may_repeat=False) is outcome
