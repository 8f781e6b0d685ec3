"""Thousands of crash images; `make nightly` tries hundreds of thousands."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from tests.crash import long_runs, page
from tests.crash.done import Crashed, crashed, missing
from tests.crash.expectation import Crash
from tests.crash.faults import Ending
from tests.crash.fleet import SHARDS, shards, simulate
from tests.crash.kill import Kills
from tests.crash.simulator import Outcome, Plan, Simulator
from tests.crash.workloads import ALL, WORKLOADS
from tests.done_parts import DonePart
from tests.proved_code import code_of

IMAGES = 2_500
LEAST = 200
"""Images of each shard; some have many more."""
AGAIN = 12
"""One image in so many is crashed again during its recovery. With a quarter as many of them, a
recovery that did not sync the index was not found.
"""
SHARE = 0.04
"""Of the moments at which a workload, or a recovery, can be killed; the nightly run tries all."""


def test_there_are_enough_workloads_and_images() -> None:
    assert len(WORKLOADS) >= 40
    assert sorted(name for shard in shards() for name in shard) == sorted(ALL)


@pytest.fixture(scope="module")
def distinct() -> dict[int, int]:
    """The number of images of each shard that was run."""
    return {}


@pytest.mark.parametrize("shard", range(SHARDS))
def test_crashes(shard: int, distinct: dict[int, int]) -> None:
    outcomes = simulate(shards()[shard], LEAST, seed=1, again=AGAIN, share=SHARE)
    found = [violation.describe() for outcome in outcomes for violation in outcome.violations]
    assert not found, "\n".join(found)
    assert all(outcome.crashes.keys() == {crash.value for crash in Crash} for outcome in outcomes)
    distinct[shard] = sum(outcome.distinct for outcome in outcomes)
    assert sum(outcome.again for outcome in outcomes)
    assert distinct[shard] >= LEAST


@pytest.mark.parametrize(
    ("wanted", "share"), [(120, 0.3), pytest.param(300, 1.0, marks=pytest.mark.nightly)]
)
def test_a_recovery_may_be_crashed_after_it_has_lowered_a_committed_offset(
    wanted: int, share: float
) -> None:
    plan = Plan(seed=20785, wanted=wanted, again=1, share=share)
    outcome = Simulator(WORKLOADS["consumer-offsets"], plan).run()
    assert outcome.again > wanted // 3
    assert not outcome.violations, outcome.violations[0].describe()


def test_images_of_all_shards(distinct: dict[int, int]) -> None:
    if len(distinct) < SHARDS:
        pytest.skip("needs all shards in one process")
    assert sum(distinct.values()) >= IMAGES, distinct


def test_page(tmp_path: Path) -> None:
    parts = crashed(tmp_path / "done.json")
    code = code_of("tests.crash.workloads.appends")
    error = "--workload put --image 0.3.p1 --seed 9"
    result = Crashed(9, 3, 2345, 1234, 40, 1, [error])
    parts.add(DonePart("put 9", code, "2026-01-01", 60, result))
    parts.add(DonePart("batch 9", "other", "2026-01-01", 60, result))
    page.write(parts, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "**1,234 images, 1 violations**" in text
    assert "4 seeds from 9; " in text
    assert "| `put` | 3 | 2,345 | 1,234 | 40 | 1 |" in text
    assert "batch" not in text.partition("### Workloads")[2]
    assert error in text


def test_a_run_has_what_was_not_crashed_with_the_code_as_it_is(tmp_path: Path) -> None:
    parts = crashed(tmp_path / "done.json")
    code = code_of("tests.crash.workloads.appends")
    parts.add(DonePart("put 9", code, "2026-01-01", 60, Crashed(9, 3, 20, 10, 4, 0, [])))
    wanted = [*islice(missing(parts, 11, images=11), len(ALL))]
    assert "put 11" not in wanted
    assert "put-synced 11" in wanted
    assert wanted[-1] == "drawn-1100000 11"
    assert len([*missing(parts, 11, images=10)]) == len(ALL) - 1


def test_images_that_several_seeds_left_count_once() -> None:
    both, other = Outcome("put", images=5, moments=3), Outcome("put", images=7, moments=3)
    both.left, other.left = {b"a": False, b"b": True, b"c": True}, {b"b": False, b"c": True}
    both.add(other)
    assert (both.images, both.moments, both.distinct, both.again) == (12, 3, 3, 1)


def test_pages_of_faults_and_kills(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    runs = {("FULL", Ending.CONTINUED.value): 12, ("SYNC_ONCE", Ending.FINAL.value): 3}
    tally = long_runs.FaultTally(Counter(runs), ["put, FULL at 3: lost"])
    long_runs.write_faults(tally, 60.0, path)
    kills = Kills(tmp_path, "SYNC_FLUSH", 7, 1234)
    long_runs.write_kills([kills], [], 60.0, path)
    text = path.read_text()
    assert "**15 faults over" in text
    assert "- put, FULL at 3: lost" in text
    assert "| disk full, once | create, reserve space, write | 12 | 12 | 0 | 0 |" in text
    assert "| failed sync, once | sync a directory, sync a file | 3 | 0 | 3 | 0 |" in text
    assert "**7 kills, 0 violations**" in text
    assert "| SYNC_FLUSH | 7 | 1,234 |" in text
