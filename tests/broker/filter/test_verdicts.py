"""A condition that takes long is evaluated in slices, for a pull, a waiting pull and a pop."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.broker.filter import verdicts
from mqlake.broker.filter.sql92.parser import compile_expression
from mqlake.broker.filter.subscriptions import Choice
from mqlake.formats.record import Record
from mqlake.protocol.codes import ResponseCode
from mqlake.store.append.message import Message
from tests import simulated
from tests.broker.filter.costly import CHOSEN, CONDITION, LARGE, TERMS, count_slices
from tests.broker.pop.popping import TOPIC, bodies, pop, run
from tests.broker.pull.pulls import fill, polls, pull, start_pull
from tests.broker.running import Running, running
from tests.until import until

SQL = {"subscription": CONDITION, "expression_type": "SQL92"}


@pytest.mark.parametrize(("properties", "holds"), [(LARGE, False), (CHOSEN, True)])
def test_one_evaluation_is_interrupted_after_each_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], holds: bool
) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 1, properties=properties)
            (record,) = broker.records("Orders")
            count_slices(monkeypatch)
            assert decide(record) == (holds, TERMS)

    simulated.run(main())


def decide(record: Record) -> tuple[bool, int]:
    """Return whether the condition holds, and in how many slices that was not yet decided."""
    found = verdicts.Verdicts(Choice(condition=compile_expression(CONDITION)))
    for interrupted in range(TERMS + 1):
        try:
            return found.holds(record), interrupted
        except verdicts.UndecidedError:
            found.resume()
    raise AssertionError("each slice must decide something")


def test_others_are_served_while_a_pull_evaluates_a_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 2, properties=LARGE)
            await fill(broker, 2, 2, properties=CHOSEN)
            slices = count_slices(monkeypatch)
            at, found = 0, list[bytes]()
            while at < 4:
                answer = await pull(broker, at, **SQL)
                found += answer.bodies
                assert answer.offsets.next_begin_offset == at + 1, "a slice was used up"
                at += 1
            assert found == [b"2", b"3"]
            assert len(slices) >= 4 * TERMS

    simulated.run(main())


def test_a_waiting_pull_is_answered_if_its_condition_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 1, properties=LARGE)
            waiting = start_pull(broker, 1, 1_000_000, **SQL)
            await until(lambda: len(polls(broker)) == 1)
            count_slices(monkeypatch)
            await fill(broker, 1, 1, properties=CHOSEN)
            answer = await waiting
            assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
            assert answer.offsets.next_begin_offset == 1
            assert (await pull(broker, 1, **SQL)).bodies == [b"1"]

    simulated.run(main())


def test_others_are_served_while_a_pop_evaluates_a_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await put(broker, LARGE, CHOSEN, LARGE, CHOSEN)
            slices = count_slices(monkeypatch)
            found = await pop(broker, exp=CONDITION, exp_type="SQL92")
            assert bodies(found) == ["1", "3"]
            assert len(slices) >= 4 * TERMS
            assert not await pop(broker, exp=CONDITION, exp_type="SQL92")

    run(test())


async def put(broker: Running, *properties: dict[str, str]) -> None:
    broker.state.topics.make(TOPIC, 1)
    await broker.state.store.put_many(
        [Message(TOPIC, b"%d" % at, properties=each) for at, each in enumerate(properties)]
    )
    broker.state.store.core.tick()
