"""Clients and brokers in simulated time: a short form of `python -m tests.simulation --nightly`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.finishing import Finishing
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.store.loop.appends import Appends
from tests.simulation import page
from tests.simulation.plan import GROUP, NETWORK, POWER, PROCESS, Reading, draw
from tests.simulation.run import Outcome, run
from tests.simulation.total import Total, run_all

GROUPS, SEEDS = 1, 60


@pytest.mark.parametrize("number", range(GROUPS))
def test_the_invariants_hold(number: int) -> None:
    total = run_all(range(number * SEEDS, (number + 1) * SEEDS))
    assert not total.violations, "\n".join(total.violations)
    assert total.runs == SEEDS
    assert total.acknowledged > SEEDS
    assert set(total.faults) == {*NETWORK, *PROCESS, *POWER, *GROUP}


@pytest.mark.parametrize("seed", [3, 17, 42])
def test_a_seed_replays_exactly(seed: int) -> None:
    first, second = run(seed), run(seed)
    assert first.trace == second.trace
    assert first.events == second.events
    assert first.sends == second.sends


def test_plans_differ() -> None:
    plans = [draw(seed) for seed in range(50)]
    assert {plan.reading for plan in plans} == set(Reading)
    assert {plan.brokers for plan in plans} == {1, 2}
    assert draw(7) == plans[7]


def is_caught(what: str, first: int) -> bool:
    """Say whether a run of some seeds, from one that is known to, reports a violation."""
    seeds = range(first, first + 300)
    return any(what in line for seed in seeds for line in run(seed).violations)


def test_a_store_that_confirms_too_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def confirm(_: Appends, results: object) -> object:
        return results

    monkeypatch.setattr(Appends, "confirm", confirm)
    assert is_caught("acknowledged and never consumed", 5)


def test_an_offset_that_passes_unfinished_messages_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(QueueMessages, "committed_offset", property(lambda held: held.next_offset))
    assert is_caught("passed it unfinished", 3)


def test_a_consumer_that_drops_what_fails_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drop(finishing: Finishing, message: ConsumedMessage, _: int) -> bool:
        return await finishing.ack(message)

    monkeypatch.setattr(Finishing, "retry_later", drop)
    assert is_caught("not consumed within", 3)


def test_the_page_has_counters_and_violations(tmp_path: Path) -> None:
    path = tmp_path / "reliability.md"
    path.write_text("# Reliability\n")
    total = Total()
    total.add(run(1))
    total.add(Outcome(2, violations=["lost"], faults=Counter({"cut": 3})))
    page.write(total, 1, 0.5, path)
    text = path.read_text()
    assert "**2 runs, 1 violations**" in text
    assert "python -m tests.simulation --seed 2: lost" in text
