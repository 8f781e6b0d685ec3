"""Celery while workers and the broker are killed: a short run of `tests.kombu.kills`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("celery", reason="these tests need Celery: pip install 'mqlake[celery]'")

from tests.kombu.kills import page
from tests.kombu.kills.plan import KINDS, draw
from tests.kombu.kills.run import Outcome, command, run


def test_kills_lose_no_task() -> None:
    outcome = run(1, kills=4)
    assert not outcome.violations, f"run it again: {command(1)}"
    assert outcome.kills.total() == 4
    assert outcome.returned > 30


def test_a_seed_always_gives_the_same_plan() -> None:
    assert draw(7, 10, 2) == draw(7, 10, 2)
    assert draw(7, 10, 2) != draw(8, 10, 2)
    assert {kill.kind for kill in draw(7, 100, 2)} == set(KINDS)


def test_the_page_has_counters_and_violations(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    kills = Counter({"kill a worker": 4, "kill the broker": 6})
    failed = Outcome(6, violations=["task t-1 did not run"], kills=kills, duplicates=3)
    page.write([Outcome(5, returned=1234, kills=kills), failed], path)
    text = path.read_text()
    assert "## Celery kills" in text
    assert "**20 kills, 1 violations**" in text
    assert "| tasks for which `delay()` returned | 1,234 |" in text
    assert "| runs that repeat another one | 3 |" in text
    assert f"{command(6)}\ntask t-1 did not run" in text
