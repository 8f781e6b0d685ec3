"""A broker that is lost after its queues were planned: an error, or counted losses; never only
fewer rows.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from mqlake.client import Message, MessageQueue
from mqlake.client.errors import ClientError
from mqlake.errors import StoreError
from mqlake.query.live.options import LiveOptions
from mqlake.query.live.plan import plan_batch
from mqlake.query.live.task import LiveTask
from mqlake.testing import RunningBroker, broker
from tests.broker.running import PATIENCE
from tests.client.servers import create_topic, wait_for_dispatch
from tests.query.live.engine import LiveEngine, asked
from tests.query.live.rows import options_of, task_rows
from tests.query.live.test_batch import registered
from tests.query.live.topics import wait_for_route
from tests.query.store.growing import KilledError

MESSAGES = 5
TOPIC = "On-b"


class PlannedQuery:
    """The tasks of a query on a topic of one queue, and an end of its broker."""

    def __init__(self, options: LiveOptions, address: str, lose: Callable[[], object]) -> None:
        self.options, self.address, self.lose = options, address, lose
        self.tasks: list[LiveTask] = list(plan_batch(options, ()))

    def keys(self) -> list[str]:
        """Read all tasks; return the keys of the messages."""
        rows = (row for task in self.tasks for row in task_rows(task, self.options))
        return [row["keys"][0] for row in rows]


@contextmanager
def planned(running: RunningBroker, **options: object) -> Iterator[PlannedQuery]:
    """Plan a query on a topic that only a second broker has."""
    names = running.name_server
    with ExitStack() as stack:
        second = stack.enter_context(broker(brokerName="broker-b", namesrvAddr=names))
        asyncio.run(create_topic(second.address, TOPIC, 1))
        asyncio.run(wait_for_route(names, TOPIC))
        queue = MessageQueue(TOPIC, "broker-b", 0)
        with second.producer(timeout=PATIENCE) as producer:
            for number in range(MESSAGES):
                producer.send(Message(topic=TOPIC, body=b"x", keys=str(number)), queue=queue)
        asyncio.run(wait_for_dispatch(second.address, TOPIC, {0: MESSAGES}))
        given = options_of(names, subscribe=TOPIC, retryTimeout="10ms", **options)
        yield PlannedQuery(given, second.address, stack.pop_all().close)


def test_a_broker_that_the_name_server_still_lists_is_an_error(running: RunningBroker) -> None:
    """It may come back: its messages are not lost."""
    for fails in (True, False):
        with planned(running, failOnDataLoss=fails) as query:
            query.lose()
            with pytest.raises(ClientError, match=f"{query.address}: Connection refused"):
                asyncio.run(_read_listed(running.name_server, query))


async def _read_listed(names: str, query: PlannedQuery) -> None:
    async with registered(names, TOPIC, "broker-b", query.address):
        await asyncio.to_thread(query.keys)


def test_a_broker_that_has_left_the_cluster_is_an_error(running: RunningBroker) -> None:
    with planned(running) as query:
        query.lose()
        with pytest.raises(StoreError, match=r"5 messages at offset 0: .*set failOnDataLoss"):
            query.keys()


def test_the_messages_of_a_broker_that_has_left_are_counted_if_losses_are_tolerated(
    running: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with planned(running, failOnDataLoss=False) as query:
        query.lose()
        assert query.keys() == []
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    lost = r"skipped 5 messages; the first: .*On-b.*broker-b.*5 messages at offset 0"
    assert sum(re.search(lost, text) is not None for text in warnings) == 1


def test_a_stream_counts_the_messages_of_a_broker_that_has_left_if_losses_are_tolerated(
    running: RunningBroker,
) -> None:
    given = {"subscribe": TOPIC, "failOnDataLoss": False, "retryTimeout": "1s"}
    options = asked(running.name_server, **given)
    with planned(running) as query:
        stream = LiveEngine(options)
        with pytest.raises(KilledError):
            stream.trigger("planned")
        query.lose()
        stream.restart(options)
        assert stream.keys == []


def test_a_broker_that_is_lost_with_its_name_server_is_an_error() -> None:
    for fails in (True, False):
        with ExitStack() as stack:
            first = stack.enter_context(broker())
            asyncio.run(wait_for_route(first.name_server, "TBW102"))
            with planned(first, failOnDataLoss=fails) as query:
                query.lose()
                stack.close()
                with pytest.raises(ClientError, match="Connection refused"):
                    query.keys()
