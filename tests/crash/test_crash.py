"""Twenty thousand crash images; `make nightly` tries a million."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import page
from tests.crash.expectation import Crash, ViolationError
from tests.crash.fleet import simulate
from tests.crash.simulator import Outcome, Plan, Violation
from tests.crash.workloads import WORKLOADS

WANTED = 500
FEW = {"nothing": 20}
"""Workloads that cannot leave so many images."""


def test_there_are_enough_workloads_and_images() -> None:
    assert len(WORKLOADS) >= 40
    assert sum(FEW.get(name, WANTED) for name in WORKLOADS) >= 20_000


@pytest.mark.parametrize("name", WORKLOADS)
def test_crashes(name: str) -> None:
    outcome = simulate(name, Plan(seed=1, wanted=WANTED))
    assert not outcome.violated, "\n".join(found.describe() for found in outcome.violations)
    assert outcome.distinct >= FEW.get(name, WANTED)


def test_page(tmp_path: Path) -> None:
    outcome = Outcome("put", images=2345, distinct=1234, violated=1)
    error = ViolationError("lost: messages [5]")
    outcome.violations.append(Violation("put", 9, "0.3.p1", Crash.KILL, ["sync /a"], error))
    page.write([outcome], 9, 60.0, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "**1,234 images, 1 violations**" in text
    assert "--workload put --image 0.3.p1 --seed 9" in text
