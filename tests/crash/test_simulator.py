"""The simulator finds what it is there for: steps that a store forgot."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.crash.expectation import (
    Acknowledged,
    Crash,
    Durable,
    Expectation,
    Found,
    Retired,
    Sent,
    ViolationError,
)
from tests.crash.images import Limits, PowerCuts
from tests.crash.pending import PendingDisk
from tests.crash.simulator import EMPTY, Outcome, Plan, Simulator, spread
from tests.crash.toy import Toy
from tests.crash.trace import MakeFile, MakeFolder, Resize, Write

PLAN = Plan(seed=1, again=1)


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
    again = _simulate(forgets, Plan(seed=1, only=violation.image))
    assert [found.describe() for found in again.violations] == [violation.describe()]


def test_the_seed_draws_the_images() -> None:
    disk = PendingDisk(EMPTY)
    for step in (MakeFile(0, "file", 1), Resize(1, 20_480), Write(1, 0, b"x" * 20_480, False)):
        disk.apply(step)

    def drawn(seed: int) -> list[bytes]:
        images = PowerCuts(disk).images(random.Random(seed), Limits(64, 4, 20))
        return [image.digest() for image in images]

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(set(drawn(1))) > 20


@pytest.mark.parametrize(("count", "share"), [(1, 0.07), (50, 0.07), (99, 0.3), (7, 1.0)])
def test_a_share_of_moments_is_spread_evenly(count: int, share: float) -> None:
    seen: set[int] = set()
    for seed in range(300):
        chosen = spread(random.Random(seed), count, share)
        found = [number for number in range(count) if number in chosen]
        assert len(found) == max(1, round(count * share))
        assert all(after - one <= 2 * count / len(found) + 1 for one, after in pairwise(found))
        seen.update(found)
    assert seen == {*range(count)}


def test_few_choices_are_all_tried() -> None:
    disk = PendingDisk(EMPTY)
    for step in (MakeFile(0, "a", 1), MakeFolder(0, "b", 2), MakeFile(2, "c", 3)):
        disk.apply(step)
    images = {image.digest() for image in PowerCuts(disk).images(random.Random(0), Limits(8, 0, 0))}
    assert len(images) == 6  # "c" is there with "b" only


def test_what_is_deleted_before_it_is_synced_need_not_be_found() -> None:
    expected = Expectation()
    for note in (Sent(1), Acknowledged(1), Retired(1), Durable(1)):
        expected.note(note)
    for crash in Crash:
        expected.check(Found(frozenset()), crash)
    for note in (Sent(2), Acknowledged(2), Durable(2)):
        expected.note(note)
    for crash in Crash:
        with pytest.raises(ViolationError, match="lost"):
            expected.check(Found(frozenset()), crash)
