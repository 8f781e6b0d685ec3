"""The transport as kombu uses it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("celery", reason="these tests need Celery: pip install 'mqlake[celery]'")

from kombu import Connection, Consumer, Exchange, Producer, Queue
from kombu.exceptions import OperationalError

from mqlake.client import Message, SimpleConsumer
from mqlake.client import Producer as AsyncProducer
from mqlake.testing import RunningBroker
from mqlake.testing import broker as run_broker
from tests.kombu.conftest import Connect
from tests.kombu.leases import FACTOR, long_leases
from tests.kombu.receiving import PATIENCE, Received, consume, publish
from tests.until import wait_until

VISIBILITY = 1
"""Seconds; the broker waits longer, see `long_leases`."""


def wait_for_size(queue: Any, size: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while (found := queue.queue_declare(passive=True).message_count) != size:
        assert time.monotonic() < deadline, f"{found} messages, not {size}"
        time.sleep(0.05)


async def redeliver(running: RunningBroker) -> None:
    """Let a message be redelivered that nobody acknowledges for half as long as others."""
    name_server = running.name_server
    topic = f"canary-{time.monotonic_ns()}"
    async with AsyncProducer(name_server) as producer:
        await producer.send(Message(topic=topic, body=b"x"))
        async with SimpleConsumer(
            name_server, "celery", topic, invisible=VISIBILITY / 2, is_from_first=True
        ) as consumer:
            for wait in (0, FACTOR * VISIBILITY / 2):
                running.advance(wait)
                async with asyncio.timeout(PATIENCE):
                    while not await consumer.receive(1, 2.0):
                        pass


def test_publish_consume_acknowledge(connect: Connect) -> None:
    connection = connect()
    body = {"text": "ünïcode", "number": 1, "none": None}
    publish(connection, "simple", body)
    received = Received(connection)
    with consume(connection, Queue("simple"), received):
        received.wait(1)
        assert received.bodies == [body]
        assert not received.messages[0].delivery_info["redelivered"]


def test_a_direct_exchange_routes_by_declared_queues(connect: Connect) -> None:
    connection, exchange = connect(), Exchange("shop", type="direct")
    paid, other = (Queue(name, exchange, routing_key=name) for name in ("paid", "other"))
    received = Received(connection)
    with connection.channel() as channel:
        for queue in (paid, other):
            queue(channel).declare()
        Producer(channel).publish("a", exchange=exchange, routing_key="paid")
        Producer(channel).publish("b", exchange=exchange, routing_key="other")
    with consume(connection, paid, received):
        received.wait(1)
        received.nothing_more(0.3)
    assert received.bodies == ["a"]


def test_a_requeued_message_is_delivered_again(connect: Connect) -> None:
    connection = connect()
    received = Received(connection, keep=True)
    publish(connection, "again", "x")
    with consume(connection, Queue("again"), received):
        received.wait(1)
        received.messages[0].requeue()
        received.wait(2)
        assert received.messages[1].delivery_info["redelivered"]


def test_what_is_finished_is_not_redelivered() -> None:
    with ExitStack() as stack:
        extended = stack.enter_context(long_leases())
        broker = stack.enter_context(run_broker())  # of its own: its clock is advanced
        url = f"rocketmq://{broker.name_server}/"
        options = {"visibility_timeout": VISIBILITY}
        connection = stack.enter_context(Connection(url, transport_options=options))
        names = ("acked", "rejected", "unsafe", "kept")
        received = {name: Received(connection, keep=True) for name in names}
        for name, each in received.items():
            publish(connection, name, *range(10))
            options = {"no_ack": name == "unsafe"}
            stack.enter_context(consume(connection, Queue(name), each, **options))
        for each in received.values():
            each.wait(10)
        finish_in_threads(
            [message.ack for message in received["acked"].messages]
            + [message.reject for message in received["rejected"].messages]
        )
        # What is kept is extended, and not redelivered either.
        for _ in range(3):
            await_extensions(extended, 10)
            broker.advance(0.8 * FACTOR * VISIBILITY)
        await_extensions(extended, 10)
        asyncio.run(redeliver(broker))
        received["kept"].nothing_more(0.2)
        finish_in_threads([message.ack for message in received["kept"].messages])
        assert [sorted(each.bodies) for each in received.values()] == [list(range(10))] * 4
        with connection.channel() as channel:
            for name in received:
                wait_for_size(Queue(name)(channel), 0)


def await_extensions(extended: Counter[str], count: int) -> None:
    """Wait until so many messages have been extended again."""
    before = extended.copy()
    wait_until(lambda: sum(extended[each] > before[each] for each in list(extended)) >= count)


def finish_in_threads(calls: list[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def test_foreign_messages_are_set_aside(
    connect: Connect, broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    connection = connect()
    publish(connection, "mixed", "mine")
    with broker.producer() as producer:
        for body in (b"no JSON", b"[]", b'{"properties": {}}', b"\xff"):
            producer.send(Message(topic="mixed", body=body))
    received = Received(connection)
    with consume(connection, Queue("mixed"), received), connection.channel() as channel:
        received.wait(1)
        wait_for_size(Queue("mixed")(channel), 0)
    assert received.bodies == ["mine"]
    assert len([line for line in caplog.messages if "not kombu's" in line]) == 4


def test_prefetch_count(connect: Connect) -> None:
    connection = connect()
    publish(connection, "bounded", *range(10))
    received = Received(connection, keep=True)
    with consume(connection, Queue("bounded"), received, prefetch_count=3) as consumer:
        received.wait(3)
        received.nothing_more(0.5)
        received.messages[0].ack()
        received.wait(4)
        received.nothing_more(0.3)
        consumer.qos(prefetch_count=6)
        received.wait(7)
        received.nothing_more(0.3)
    assert len(set(received.bodies)) == 7


def test_prefetch_count_is_of_all_queues_of_a_channel(connect: Connect) -> None:
    connection = connect()
    publish(connection, "left", *range(5))
    publish(connection, "right", *range(5))
    received = Received(connection, keep=True)
    queues = [Queue("left"), Queue("right")]
    channel = connection.channel()
    with Consumer(channel, queues, callbacks=[received], prefetch_count=2):
        received.wait(2)
        received.nothing_more(0.5)


def test_closing_gives_back_what_is_not_acknowledged(connect: Connect) -> None:
    connection = connect()
    publish(connection, "returned", "a", "b")
    first = connect()
    received = Received(first, keep=True)
    with consume(first, Queue("returned"), received, prefetch_count=2):
        received.wait(2)
        received.messages[0].ack()
        kept = received.bodies[1]
    first.release()
    again = Received(connection)
    with consume(connection, Queue("returned"), again):
        again.wait(1)
        again.nothing_more(1.5)
    assert again.bodies == [kept]


def test_get_count_purge_delete(connect: Connect) -> None:
    connection = connect()
    with connection.channel() as channel:
        queue = Queue("counted")(channel)
        assert queue.queue_declare().message_count == 0
        publish(connection, "counted", *range(40))
        wait_for_size(queue, 40)
        message = queue.get()
        assert message.payload in range(40)
        message.ack()
        assert queue.get(no_ack=True).payload in range(40)
        assert queue.purge() == 38
        assert queue.get() is None
        wait_for_size(queue, 0)
        with pytest.raises(connection.channel_errors, match="if_unused is not supported"):
            queue.delete(if_unused=True)
        assert queue.queue_declare(passive=True).message_count == 0
        queue.delete()
        with pytest.raises(connection.channel_errors, match="counted"):
            queue.queue_declare(passive=True)


def test_fanout_reaches_all_who_listen(connect: Connect) -> None:
    news = Exchange("news", type="fanout")
    sides = [connect(), connect()]
    everybody = [Received(connection) for connection in sides]
    consumers = [
        consume(side, Queue(f"reader-{number}", news, exclusive=True), received)
        for number, (side, received) in enumerate(zip(sides, everybody, strict=True))
    ]
    with consumers[0], consumers[1]:
        publish(connect(), "", "extra", exchange=news)
        for received in everybody:
            received.wait(1)
            received.nothing_more(0.3)
    assert [received.bodies for received in everybody] == [["extra"], ["extra"]]


def test_transient_queues_select_by_routing_key(connect: Connect) -> None:
    exchange, connection = Exchange("events", type="topic"), connect()
    queue = Queue("watch", exchange, routing_key="task.#", auto_delete=True)
    received = Received(connection)
    consumer = consume(connection, queue, received)
    sender = connect()
    # What is published after the declaration arrives, although nobody consumes yet.
    for key in ("task.sent", "worker.online", "task.done.late"):
        publish(sender, key, key, exchange=exchange)
    with consumer:
        received.wait(2)
        received.nothing_more(0.3)
    assert sorted(received.bodies) == ["task.done.late", "task.sent"]


def test_brokers_keep_tasks_until_their_eta(connect: Connect) -> None:
    connection = connect()
    due = datetime.now(UTC) + timedelta(seconds=5)
    publish(connection, "later", "x", headers={"eta": due.isoformat(), "id": "t-1"})
    received = Received(connection)
    with consume(connection, Queue("later"), received):
        received.wait(1)
        # The broker delivers it a second before, for the worker to wait.
        late = (datetime.now(UTC) - due).total_seconds()
        assert -2 < late < 20


def test_etas_may_be_left_to_the_workers(connect: Connect) -> None:
    connection = connect(broker_eta=False)
    due = datetime.now(UTC) + timedelta(hours=1)
    publish(connection, "now", "x", headers={"eta": due.isoformat()})
    received = Received(connection)
    with consume(connection, Queue("now"), received):
        received.wait(1)


def test_priorities_are_ignored_with_a_warning(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    connection = connect()
    publish(connection, "ranks", 1, 2, priority=9)
    assert [line for line in caplog.messages if "priorities" in line] == [
        "priorities are ignored: RocketMQ delivers messages in their order"
    ]


def test_no_thread_is_left(connect: Connect) -> None:
    first, second = connect(), connect()
    publish(first, "clean", 1)
    publish(second, "clean", 2)
    assert [thread.name for thread in threading.enumerate()].count("mqlake-kombu") == 1
    first.release()
    publish(second, "clean", 3)
    second.release()
    assert "mqlake-kombu" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_connects_by_itself(connect: Connect, tmp_path: Path) -> None:
    connection = connect()
    publish(connection, "forked", "parent")
    child = os.fork()
    if not child:
        try:
            publish(connection.clone(), "forked", "child")
            # kombu connects anew in the child.
            publish(connection, "forked", "inherited")
            connection.release()
            (tmp_path / "done").touch()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "done").exists()
    received = Received(connection)
    with consume(connection, Queue("forked"), received):
        received.wait(3)
    assert sorted(received.bodies) == ["child", "inherited", "parent"]


def test_a_closed_port_is_an_error_within_the_connect_timeout() -> None:
    connection = Connection("rocketmq://127.0.0.1:1", connect_timeout=2)
    with pytest.raises(OperationalError, match=r"127\.0\.0\.1:1"):
        connection.ensure_connection(max_retries=1)
