"""Clients under faults that are drawn from seeds: a few of the runs of `tests.client.faults`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.client.faults import page
from tests.client.faults.duplicates import UNEXPLAINED
from tests.client.faults.plan import draw
from tests.client.faults.run import Outcome, command, run


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_faults_lose_nothing(seed: int) -> None:
    outcome = run(seed)
    assert not outcome.violations, f"run it again: {command(seed)}"
    assert outcome.acknowledged > 50
    assert outcome.observations > 50
    assert not outcome.duplicates[UNEXPLAINED]


def test_a_seed_always_gives_the_same_plan() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_the_page_has_counters_and_violations(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    events = Counter({"half-open": 3, "a consumer joins": 2})
    runs = [Outcome(5, acknowledged=1234, events=events), Outcome(6, violations=["m1: lost"])]
    page.write(runs, path)
    text = path.read_text()
    assert "## Client faults" in text
    assert "**2 runs, 1 violations**" in text
    assert "| messages acknowledged | 1,234 |" in text
    assert "| faults: drop connections at the broker alone | 3 |" in text
    assert "| faults: a consumer joins | 2 |" in text
    assert f"{command(6)}\nm1: lost" in text
