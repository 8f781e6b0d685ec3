"""Which queues are whose, and whether they are pulled or popped."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.broker.pop import assignment
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.pop import RequestMode
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.strategies import STRATEGIES, share
from tests import simulated
from tests.broker.clients_of import known_client
from tests.broker.pop.assignments import GROUP, ask
from tests.broker.pop.popping import TOPIC, send
from tests.broker.running import Running, running

QUEUES = [MessageQueue(TOPIC, "broker-a", number) for number in range(8)]


@given(st.sampled_from(sorted(STRATEGIES)), st.integers(0, 12), st.integers(1, 12))
def test_each_queue_is_one_clients(name: str, queues: int, clients: int) -> None:
    strategy, names = STRATEGIES[name], [f"c{number}" for number in range(clients)]
    shares = [strategy(client, QUEUES[:queues], names) for client in names]
    assert sorted(queue.queue_id for each in shares for queue in each) == [*range(min(queues, 8))]
    sizes = sorted(map(len, shares))
    assert sizes[-1] - sizes[0] <= 1
    assert strategy("stranger", QUEUES, names) == []


@pytest.mark.parametrize(
    ("others", "clients", "ids"),
    [(0, 4, [-1]), (3, 4, [-1]), (1, 4, [0, 1, 2, 3]), (2, 5, [0, 1, 2, 3, 4, 5]), (1, 12, [0])],
)
def test_shared_to_pop(others: int, clients: int, ids: list[int]) -> None:
    names = [f"c{number:02}" for number in range(clients)]
    found = share(STRATEGIES["AVG"], "c00", QUEUES, names, others)
    assert list(dict.fromkeys(queue.queue_id for queue in found)) == ids


def test_pulled_until_it_is_said_otherwise(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            running(tmp_path) as broker,
            known_client(broker, {}, "one", groups=GROUP),
            known_client(broker, {}, "two", groups=GROUP),
        ):
            await send(broker, "a")
            assert await ask(broker, "one") == [(0, "PULL"), (1, "PULL")]
            assert await ask(broker, "two") == [(2, "PULL"), (3, "PULL")]
            assert len(await ask(broker, "one", message_model="BROADCASTING") or []) == 4
            assert await ask(broker, "one", strategy_name="MINE") is None
            mode = RequestMode(TOPIC, GROUP, "POP", 0)
            answer = await broker.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, None, encode_body(mode))
            assert answer.code == ResponseCode.SUCCESS
            assert await ask(broker, "one") == [(-1, "POP")]
        async with running(tmp_path) as broker:
            answer = await broker.ask(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
            modes = json.loads(bytes(answer.body))["messageRequestModeMap"]
            assert modes == {
                TOPIC: {
                    GROUP: {
                        "topic": TOPIC,
                        "consumerGroup": GROUP,
                        "mode": "POP",
                        "popShareQueueNum": 0,
                    }
                }
            }

    simulated.run(run())


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ("None", ResponseCode.TOPIC_NOT_EXIST),
        ("%RETRY%group", ResponseCode.NO_PERMISSION),
    ],
)
def test_modes_that_are_refused(tmp_path: Path, topic: str, code: ResponseCode) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            body = encode_body(RequestMode(topic, GROUP, "POP"))
            answer = await broker.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, None, body)
            assert answer.code == code

    simulated.run(run())


def watch_routes(broker: Running, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the topics that name servers are asked for."""
    asked: list[str] = []

    async def route(topic: str) -> TopicRouteData | None:
        asked.append(topic)
        await asyncio.sleep(0)
        return None

    monkeypatch.setattr(broker.state.names, "route", route)
    return asked


@pytest.mark.parametrize("topic", ["T" * 300_000, "no topic\n", " "])
def test_name_servers_are_not_asked_for_what_is_no_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            asked = watch_routes(broker, monkeypatch)
            assert await ask(broker, "one", topic) is None
            assert not asked

    simulated.run(run())


def test_routes_that_are_remembered_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            monkeypatch.setattr(assignment, "_MOST_KNOWN", 3)
            asked = watch_routes(broker, monkeypatch)
            for name in ("a", "b", "c", "a", "d", "c", "b", "a"):
                await ask(broker, "one", name)
            # The fourth topic put the first one out, not those that came later.
            assert asked == ["a", "b", "c", "d", "a"]

    simulated.run(run())
