"""Clients of a broker that answers nonsense: a few cases of `tests.client.hostile_broker`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.hostile_broker import page
from tests.client.hostile_broker.case import Outcome, command, run


@pytest.mark.parametrize("seed", range(6))
def test_a_client_recovers_from_invalid_answers(seed: int) -> None:
    outcome = run(seed)
    assert not outcome.violations, f"run it again: {command(seed)}"
    assert outcome.mutated >= 1000


def test_a_seed_always_gives_the_same_case() -> None:
    first, second = run(99, 100), run(99, 100)
    assert (first.mutated, first.calls) == (second.mutated, second.calls)


def test_the_page_has_counters_and_violations(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    page.write([Outcome(5, mutated=1234), Outcome(6, violations=["a hang"])], 60.0, path)
    text = path.read_text()
    assert "**1,234 mutated answers, 1 violations**" in text
    assert f"{command(6)}\na hang" in text
