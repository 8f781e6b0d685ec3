"""The simulator finds what it is there for: steps that a store forgot."""

from __future__ import annotations

import pytest

from tests.crash.images import Limits
from tests.crash.simulator import Outcome, Plan, Simulator
from tests.crash.toy import Toy

PLAN = Plan(seed=1, limits=Limits(exhaustive=64, single=8, samples=8), again=1)


def _simulate(forgets: str, plan: Plan = PLAN) -> Outcome:
    return Simulator(Toy(forgets), plan).run()


def test_a_store_that_forgets_nothing_survives() -> None:
    outcome = _simulate("")
    assert not outcome.violated, outcome.violations[0].describe()
    assert outcome.images > outcome.distinct > 80
    assert 0 < outcome.again < outcome.distinct
    assert outcome.crashes.keys() == {"kill", "power cut"}


@pytest.mark.parametrize(
    ("forgets", "error"),
    [
        ("directory sync", "lost: messages"),
        ("data sync", "lost: messages"),
        ("checkpoint order", "record 3 is none"),
        ("temporary sync", "config: b"),
        ("checksum", "is none"),
        ("recovery sync", "lost: messages"),
    ],
)
def test_a_forgotten_step_is_found(forgets: str, error: str) -> None:
    outcome = _simulate(forgets)
    assert outcome.violated
    assert error in str(outcome.violations[0].error)
    assert outcome.violations[0].workload in outcome.violations[0].describe()


@pytest.mark.parametrize("forgets", ["directory sync", "recovery sync"])
def test_a_violation_can_be_seen_again(forgets: str) -> None:
    violation = _simulate(forgets).violations[-1]
    again = _simulate(forgets, Plan(seed=1, limits=PLAN.limits, only=violation.image))
    assert [found.describe() for found in again.violations] == [violation.describe()]


def test_the_seed_draws_the_images() -> None:
    first, second, other = (Simulator(Toy(), Plan(seed, Limits(1, 2, 4))) for seed in (1, 1, 2))
    for simulator in (first, second, other):
        simulator.run()
    assert first._seen.keys() == second._seen.keys() != other._seen.keys()
