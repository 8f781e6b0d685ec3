"""Pops that wait: whom they are answered to, and what happens meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.pop.requests import PopRequests
from mqlake.broker.pop.rounds import Rounds
from mqlake.broker.pop.waiting import WaitingPops
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.remoting.connection import Peer
from mqlake.remoting.slices import Job
from tests import simulated
from tests.broker.admin.asking import done, wanted
from tests.broker.pop.popping import GROUP, LONG, TOPIC, acknowledge, bodies, header, pop, send
from tests.broker.running import Running, running, to
from tests.broker.slow_reader import SlowReader
from tests.until import until

GROUPS = [f"group-{number}" for number in range(40)]
BODY = bytes(250_000)


def test_a_client_that_does_not_read_leaves_the_messages_to_others(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "first")
            for group in GROUPS:
                assert len(await pop(broker, consumer_group=group)) == 1
            waiting = [header(consumer_group=group, poll_time=LONG) for group in GROUPS]
            slow = await SlowReader.connect(broker)
            await slow.ask([request(RequestCode.POP_MESSAGE, fields) for fields in waiting])
            await until(lambda: all(count_waiting(broker, group) for group in GROUPS))
            sent = await broker.send(to(TOPIC, queue_id=0), BODY)
            assert sent.code == ResponseCode.SUCCESS
            await until(lambda: any(peer.is_choked for peer in broker.broker.peers))
            others = [len(await pop(broker, consumer_group=group)) for group in GROUPS[::2]]
            assert sum(others) > 4, "the messages are not out to the one that does not read"
            late = len(GROUPS) - sum(others)
            answers = await slow.read(late)
            assert {answer.code for answer in answers} == {ResponseCode.SUCCESS}
            assert all(len(answer.body) > len(BODY) for answer in answers)
            slow.close()

    asyncio.run(run())


def waiting_of(broker: Running) -> WaitingPops:
    routes: dict[int, Any] = {route.code: route for route in broker.broker.routes}
    return routes[RequestCode.POP_MESSAGE].handler.__self__._waiting


def count_waiting(broker: Running, group: str) -> int:
    """Return how many pops of a group wait."""
    return waiting_of(broker).count(TOPIC, group, -1)


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
def test_pops_of_a_group_that_is_there_again_are_woken(
    tmp_path: Path, before: int, after: int
) -> None:
    """Messages arrive, and the group ends and comes again, in every order of their steps."""

    async def run() -> None:
        async with running(tmp_path) as broker:
            await create(broker, 1)
            waiting = waiting_of(broker)
            first = asyncio.create_task(pop(broker, poll_time=LONG))
            await until(lambda: count_waiting(broker, GROUP) == 1)
            waking, ending = waiting._wake_turns(TOPIC, {0}), waiting.group_ended(GROUP)
            steps = [waking] * before + [ending] * 8
            for step in steps:
                next(step, None)
            assert await first == []
            second = asyncio.create_task(pop(broker, poll_time=LONG))
            await until(lambda: count_waiting(broker, GROUP) == 1)
            for step in [ending] * after + [waking] * 4 + [ending] * 8:
                next(step, None)
            await send(broker, "new")
            assert bodies(await second) == ["new"]

    simulated.run(run())


async def create(broker: Running, queues: int) -> None:
    fields = wanted(TOPIC, read_queue_nums=queues, write_queue_nums=queues)
    await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)


def test_a_pop_over_very_many_queues(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await create(broker, 4000)
            names = [f"{number}" for number in range(40)]
            for number, name in enumerate(names):
                await send(broker, name, queue_id=number * 97)
            first, second = await asyncio.gather(pop(broker), pop(broker))
            assert bodies([*first, *second]) == sorted(names)
            await acknowledge(broker, *first, *second)
            assert not await pop(broker)
            assert not await pop(broker, order=True)

    asyncio.run(run())


def test_what_comes_while_very_many_queues_are_looked_into(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await create(broker, 4000)
            await pop(broker)
            for number in range(8):
                waiting = asyncio.create_task(pop(broker, poll_time=LONG))
                await asyncio.sleep(0.004 * number)
                await send(broker, f"{number}", queue_id=(number * 500 + 3) % 4000)
                assert bodies(await waiting) == [f"{number}"]

    simulated.run(run())


def test_the_time_of_a_pop_is_up_while_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over: list[object] = []
    end, look = WaitingPops._over, PopRequests.try_again

    def note(pops: WaitingPops, waiter: Any) -> None:
        over.append(waiter)
        end(pops, waiter)

    def look_long(*asked: Any) -> Job[bool]:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "_now", loop.time() + 1)
        while not over:
            yield
        return (yield from look(*asked))

    monkeypatch.setattr(WaitingPops, "_over", note)
    monkeypatch.setattr(PopRequests, "try_again", look_long)

    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", properties="TAGS\1other\2")
            fields = {"exp": "wanted", "exp_type": "TAG"}
            waiting = [
                asyncio.create_task(
                    pop(broker, consumer_group=f"g{number}", poll_time=500, **fields)
                )
                for number in range(3)
            ]
            await asyncio.sleep(0.45)
            await send(broker, "b", properties="TAGS\1other\2")
            assert await asyncio.gather(*waiting) == [[]] * 3
            assert len(over) == 3
            assert not any(peer.in_flight for peer in broker.broker.peers)

    simulated.run(run())


class Waits:
    """A request that waits for anything, and is answered when it is looked at."""

    code = int(RequestCode.POP_MESSAGE)

    def __init__(self, peer: Peer, seen: list[str], name: str) -> None:
        self.peer, self._seen, self._name = peer, seen, name

    def try_again(self) -> Job[bool]:
        self._seen.append(self._name)
        yield
        return True

    def give_up(self) -> None:
        raise AssertionError("its time was not up")


def test_an_arrival_costs_the_dispatcher_the_same_however_many_groups_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []
    are_short = Rounds.are_short

    def watch(self: Rounds, name: str) -> bool:
        looked_at.append(name)
        return are_short(self, name)

    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            (peer,) = broker.broker.peers
            state, runtime, seen = broker.state, broker.runtime, list[str]()
            waiting = WaitingPops(state, runtime, Rounds(state, runtime))
            names = [f"g{number}" for number in range(3000)]
            for number, name in enumerate(names):
                waits = Waits(peer, seen, name)
                waiting.add(TOPIC, name, (-1, 0, 1)[number % 3], waits, 60_000)
            monkeypatch.setattr(Rounds, "are_short", watch)
            news = waiting.news
            broker.state.store.core.reads.arrivals(TOPIC, 0, 1)
            assert waiting.news != news, "who begins to wait now looks again"
            assert looked_at == seen == []
            await until(lambda: len(seen) == 2000)
            # Whoever comes while the others are woken misses nothing that comes then.
            broker.state.store.core.reads.arrivals(TOPIC, 1, 1)
            await asyncio.sleep(0)
            waiting.add(TOPIC, "late", 1, Waits(peer, seen, "late"), 60_000)
            broker.state.store.core.reads.arrivals(TOPIC, 1, 2)
            await until(lambda: len(seen) == 3001)
            assert sorted(seen) == sorted([*names, "late"])
            assert not waiting.count(TOPIC, "g0", -1)

    simulated.run(run())


def test_groups_for_which_nothing_waits_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlake.broker.pop.waiting._MOST_UNUSED", 10)

    async def run() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "old")
            listeners: dict[str, Any] = waiting_of(broker)._listeners
            for number in range(60):
                await pop(broker, consumer_group=f"g{number}")
                assert await pop(broker, consumer_group=f"g{number}", poll_time=5) == []
            assert len(listeners[TOPIC].turns) <= 10
            assert len(listeners) <= 1 + 2 * 10
            for group in ("g0", "g59"):
                again = asyncio.create_task(pop(broker, consumer_group=group, poll_time=LONG))
                await until(lambda group=group: count_waiting(broker, group) == 1)
                await send(broker, "new")
                assert bodies(await again) == ["new"]
                await pop(broker, consumer_group="g59")

    simulated.run(run())
