"""`mqlake admin` with a broker that is registered and gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from mqlake.broker.broker import Broker
from mqlake.client.message import Message
from mqlake.testing import RunningBroker, broker
from tests.cli.conftest import Mqlake
from tests.console.silent_broker import silent_broker


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    """A broker with a topic, whose other broker nobody reaches."""
    with broker(brokerName="broker-a") as found, found.producer() as producer:
        producer.send(Message(topic="T", body=b"x"))
        stack = AsyncExitStack()

        async def register(_: Broker) -> None:
            gone = silent_broker(found.name_server, "T", "%RETRY%g", is_gone=True)
            await stack.enter_async_context(gone)

        async def leave(_: Broker) -> None:
            await stack.aclose()

        found.call(register)
        yield found
        found.call(leave)


def test_shows_what_came_and_says_what_is_missing(running: RunningBroker, mqlake: Mqlake) -> None:
    ran = mqlake("admin", "topicStatus", "-t", "T", "-n", running.name_server, "--json")
    assert ran.code == 2
    assert {each["brokerName"] for each in ran.json["queues"]} == {"broker-a"}
    assert "broker-b did not answer: its queues are missing" in ran.err


def test_a_change_says_which_brokers_were_changed(running: RunningBroker, mqlake: Mqlake) -> None:
    names = running.name_server
    ran = mqlake("admin", "updateTopic", "-c", "DefaultCluster", "-t", "T", "-n", names)
    assert ran.code == 2
    assert "changed on broker-a; broker-b did not answer" in ran.err
    ran = mqlake("admin", "updateTopic", "-c", "DefaultCluster", "-t", "T2", "-n", names)
    assert "changed on broker-a" in ran.err
