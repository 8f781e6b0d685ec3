"""Groups of brokers in simulated time: `python -m tests.simulation.group --nightly`, for short."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlake.replication.auto_switch import reception as auto_switch_reception
from mqlake.replication.comparison import Comparison
from mqlake.store.loop.log_copying import LogCopying
from mqlake.store.replication.copies import Copies
from mqlake.store.replication.in_sync_set import InSyncSet
from tests.simulation.group import page
from tests.simulation.group.plan import BY_HAND, LED, MASTER, NETWORK, POWER, SLAVE, draw
from tests.simulation.group.run import Outcome, run
from tests.simulation.group.total import Total, run_all

GROUPS, SEEDS = 1, 60


@pytest.mark.parametrize("number", range(GROUPS))
def test_the_invariants_hold(number: int) -> None:
    total = run_all(range(number * SEEDS, (number + 1) * SEEDS))
    assert not total.violations, "\n".join(total.violations)
    assert total.runs == SEEDS
    assert total.rounds > 2 * SEEDS
    assert total.acknowledged > 10 * SEEDS
    assert set(total.faults) == {*NETWORK, *SLAVE, *MASTER, *POWER, *BY_HAND, *LED}


@pytest.mark.parametrize("seed", [3, 17, 42])
def test_a_seed_replays_exactly(seed: int) -> None:
    first, second = run(seed), run(seed)
    assert first.trace == second.trace
    assert first.events == second.events
    assert first.acknowledged == second.acknowledged


def is_caught(what: str, first: int) -> bool:
    """Say whether a run of some seeds, from one that is known to, reports a violation."""
    seeds = range(first, first + 300)
    return any(what in line for seed in seeds for line in run(seed).violations)


async def _kept_at_once(copying: LogCopying) -> int:
    return copying._core.log.end


def _of_nobody(copies: Copies) -> int:
    return copies._end()


def _own_end(_own: object, own_end: int, _other: object, _other_end: int) -> int:
    return own_end


def _all_joining(in_sync_set: InSyncSet, _: object) -> frozenset[int]:
    return frozenset(in_sync_set._joining)


@pytest.mark.parametrize(
    ("where", "name", "wrong", "what", "first"),
    [
        pytest.param(LogCopying, "kept", _kept_at_once, "lacks", 225, id="acknowledged unsynced"),
        pytest.param(Copies, "confirmed", property(_of_nobody), "lacks", 3, id="waits for nobody"),
        pytest.param(Comparison, "_compare", lambda *_: None, "differ", 372, id="compares nothing"),
        pytest.param(auto_switch_reception, "common_end", _own_end, "", 5, id="cuts nothing"),
        pytest.param(InSyncSet, "ready", _all_joining, "lacks", 98, id="joins too early"),
    ],
)
def test_a_mistake_is_caught(
    where: Any,
    name: str,
    wrong: Callable[..., Any],
    what: str,
    first: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(where, name, wrong)
    assert is_caught(what, first)


def test_the_page_has_counters_and_violations(tmp_path: Path) -> None:
    path = tmp_path / "reliability.md"
    path.write_text("# Reliability\n")
    total = Total()
    total.add(run(1))
    total.add(Outcome(2, violations=["lost"]))
    page.write(total, 1, 0.5, path)
    text = path.read_text()
    assert "1 violations**" in text
    assert "python -m tests.simulation.group --seed 2: lost" in text


def test_plans_differ() -> None:
    plans = [draw(seed) for seed in range(50)]
    assert {plan.is_led for plan in plans} == {True, False}
    assert draw(7) == plans[7]
