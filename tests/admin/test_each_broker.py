"""Brokers are asked at the same time: one that hangs neither delays nor hides the others."""

from __future__ import annotations

import asyncio

import pytest

from mqlake.admin.each_broker import (
    BrokerFailure,
    PartialChangeError,
    change_each,
    changed_brokers,
    read_each,
)
from mqlake.client.cluster import MasterBroker
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.errors import RequestTimeoutError
from tests.simulated import run

BROKERS = [MasterBroker(f"broker-{name}", "c", f"h:{name}") for name in "abc"]


async def answer(broker: MasterBroker) -> str:
    """Answer, refuse or hang, by the name of the broker."""
    if broker.name == "broker-b":
        raise RemotingError(ResponseCode.NO_PERMISSION, "not allowed")
    if broker.name == "broker-c":
        await asyncio.sleep(1e9)
    return broker.address


def test_returns_what_came_and_names_the_others() -> None:
    async def read() -> None:
        missing: list[BrokerFailure] = []
        assert await read_each(BROKERS, answer, missing) == ["h:a"]
        texts = [each.missing("its queues are missing") for each in missing]
        assert texts == [
            "broker-b refused: its queues are missing (not allowed)",
            "broker-c did not answer: its queues are missing (h:c: no answer within 20 s)",
        ]

    run(read())


def test_raises_if_all_must_answer_or_none_does() -> None:
    async def read() -> None:
        with pytest.raises(RemotingError, match="not allowed"):
            await read_each(BROKERS[:2], answer)
        missing: list[BrokerFailure] = []
        with pytest.raises(RemotingError, match="not allowed"):
            await read_each(BROKERS[1:2], answer, missing)
        with pytest.raises(RequestTimeoutError, match="within 3 s"):
            await read_each(BROKERS[2:], answer, missing, seconds=3.0)
        assert await read_each([], answer, missing) == []

    run(read())


def test_a_change_asks_all_and_says_which_were_changed() -> None:
    async def change() -> None:
        with pytest.raises(PartialChangeError) as caught:
            await change_each(BROKERS, answer)
        assert str(caught.value) == (
            "changed on broker-a; broker-b refused: not allowed; broker-c did not answer, so it"
            " may or may not have changed: h:c: no answer within 20 s"
        )
        assert [each.name for each in caught.value.changed] == ["broker-a"]
        assert [each.broker for each in caught.value.failures] == ["broker-b", "broker-c"]
        found = await change_each(BROKERS[:1], answer)
        assert [each.broker_name for each in changed_brokers(found)] == ["broker-a"]

    run(change())


def test_one_reason_of_all_is_raised_itself() -> None:
    async def change() -> None:
        with pytest.raises(RemotingError) as caught:
            await change_each([BROKERS[1], BROKERS[1]], answer)
        assert caught.value.code == ResponseCode.NO_PERMISSION
        with pytest.raises(PartialChangeError, match="changed on no broker; broker-b refused"):
            await change_each(BROKERS[1:], answer)

    run(change())
