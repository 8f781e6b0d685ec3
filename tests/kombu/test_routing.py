"""Which queues get a message: tasks that nobody would get, fanout, queues of single workers."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("celery", reason="these tests need Celery: pip install 'mqlake[celery]'")

from kombu import Exchange, Queue

from mqlake.admin.admin import Admin
from mqlake.admin.topics import names
from mqlake.kombu.errors import RequestRefusedError, UnavailableError
from mqlake.kombu.names import queue_topic
from mqlake.kombu.session import BrokerSession
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.testing import RunningBroker
from tests.kombu.conftest import Connect
from tests.kombu.receiving import Received, consume, publish

TASK = {"task": "bill", "id": "t-1"}


def topics(broker: RunningBroker) -> list[str]:
    async def ask(_: object) -> list[str]:
        async with Admin(broker.name_server) as admin:
            return await names(admin)

    return broker.call(ask)


def test_a_task_that_no_queue_would_get_is_refused(connect: Connect) -> None:
    connection, exchange = connect(), Exchange("orders", type="direct")
    with pytest.raises(RequestRefusedError, match="'orders', routing key 'paid' would be lost"):
        publish(connection, "paid", "x", exchange=exchange, headers=TASK)
    queue, received = Queue("orders-paid", exchange, routing_key="paid"), Received(connection)
    with consume(connection, queue, received):
        publish(connection, "paid", "x", exchange=exchange, headers=TASK)
        received.wait(1)


def test_a_durable_queue_gets_a_fanout_message_once(connect: Connect) -> None:
    news = Exchange("durable-news", type="fanout")
    audit, ledger = (Queue(name, news) for name in ("audit", "ledger"))
    sender, sides = connect(), [connect(), connect()]
    publish(sender, "", "before", exchange=news)
    shared = [Received(side) for side in sides]
    consumers = [consume(side, audit, each) for side, each in zip(sides, shared, strict=True)]
    other = connect()
    with other.channel() as channel:
        ledger(channel).declare()
    with consumers[0], consumers[1]:
        publish(sender, "", *range(6), exchange=news)
        deadline = time.monotonic() + 30
        while sum(len(each.bodies) for each in shared) < 6:
            assert time.monotonic() < deadline
            for side in sides:
                try:
                    side.drain_events(timeout=0.05)
                except TimeoutError:
                    continue
        for each in shared:
            each.nothing_more(0.5)
    assert sorted(shared[0].bodies + shared[1].bodies) == list(range(6))
    # The other queue had no consumer; its messages wait, and another declaration skips none.
    late = Received(other)
    with consume(other, ledger, late):
        late.wait(6)
        late.nothing_more(0.5)
    assert sorted(late.bodies) == list(range(6))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("fanout", {}),
        ("fanout", {"exclusive": True}),
        ("topic", {"exclusive": True}),
        ("direct", {"auto_delete": True}),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value), "durable"),
)
def test_a_failed_bind_is_made_by_the_next_declaration(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, kind: str, options: dict[str, bool]
) -> None:
    name = "-".join(["rebound", kind, *options])
    exchange = Exchange(f"{name}-exchange", type=kind)
    queue = Queue(name, exchange, routing_key="key", **options)
    connection, sender = connect(), connect()
    # Another binding of the same queue is left alone.
    other = Queue(name, Exchange(f"{name}-other", type="fanout"), **options)
    ends_of, failures = BrokerSession.ends_of, [ConnectionFailedError("the connection was lost")]

    async def fail_once(self: Any, topic: str) -> Any:
        if failures:
            raise failures.pop()
        return await ends_of(self, topic)

    with connection.channel() as channel:
        other(channel).declare()
        bound = queue(channel)
        monkeypatch.setattr(BrokerSession, "ends_of", fail_once)
        with pytest.raises(UnavailableError, match="the connection was lost"):
            bound.declare()
        bound.declare()
    received = Received(connection)
    with consume(connection, queue, received, auto_declare=False):
        publish(sender, "key", "sent", exchange=exchange)
        publish(sender, "", "sent to the other", exchange=other.exchange)
        received.wait(2)
        received.nothing_more(0.5)
    assert sorted(received.bodies) == ["sent", "sent to the other"]


def test_a_queue_of_one_worker_keeps_its_tasks(connect: Connect) -> None:
    queue = Queue("w1@host.dq2", Exchange("C.dq2"), routing_key="w1@host", auto_delete=True)
    with connect() as sender, sender.channel() as channel:
        queue(channel).declare()
        publish(sender, queue.name, "by name", headers=TASK)
        publish(sender, "w1@host", "by key", exchange=queue.exchange, headers=TASK)
    worker = connect()
    received = Received(worker)
    with consume(worker, queue, received):
        received.wait(2)
        received.nothing_more(0.5)
    assert sorted(received.bodies) == ["by key", "by name"]


def test_an_exclusive_queue_gets_what_is_sent_by_its_name(connect: Connect) -> None:
    queue = Queue("mine", Exchange("private"), routing_key="key", exclusive=True)
    connection = connect()
    received = Received(connection)
    with consume(connection, queue, received):
        publish(connection, "mine", "by name")
        publish(connection, "key", "by key", exchange=queue.exchange)
        received.wait(2)
    assert sorted(received.bodies) == ["by key", "by name"]


def test_a_queue_with_a_topic_and_one_without_get_the_same_message(connect: Connect) -> None:
    exchange, connection = Exchange("both", type="direct"), connect()
    queues = [
        Queue("kept", exchange, routing_key="key"),
        Queue("watching", exchange, routing_key="key", exclusive=True),
    ]
    kept, watching = (Received(connection) for _ in queues)
    with consume(connection, queues[0], kept), consume(connection, queues[1], watching):
        publish(connection, "key", "for both", exchange=exchange)
        kept.wait(1)
        watching.wait(1)
        watching.nothing_more(0.3)
    assert kept.bodies == watching.bodies == ["for both"]


def test_a_reply_creates_no_topic(connect: Connect, broker: RunningBroker) -> None:
    connection = connect()
    publish(connection, "gone-client", "result", correlation_id="t-1")
    publish(connection, "gone-client-2", "task", correlation_id="t-1", headers=TASK)
    known = topics(broker)
    assert queue_topic("gone-client") not in known
    assert queue_topic("gone-client-2") in known
    client = connect()
    received = Received(client)
    with consume(client, Queue("live-client", auto_delete=True, durable=False), received):
        publish(connection, "live-client", "result", correlation_id="t-1")
        received.wait(1)


def test_a_deleted_exchange_has_no_bindings_when_it_is_declared_again(connect: Connect) -> None:
    queue = Queue("bound-twice", Exchange("deleted", type="direct"), routing_key="key")
    connection = connect()
    received = Received(connection)
    with connection.channel() as channel:
        queue(channel).declare()
        channel.exchange_delete("deleted")
        assert list(channel.state.bindings) == []
        queue(channel).declare()
        publish(connection, "key", "sent", exchange=queue.exchange, headers=TASK)
    with consume(connection, queue, received, auto_declare=False):
        received.wait(1)
    assert received.bodies == ["sent"]


def test_a_transport_that_connects_again_declares_anew(connect: Connect) -> None:
    queue = Queue("declared-twice", Exchange("again", type="direct"), routing_key="key")
    connection = connect()
    received = Received(connection)
    transport = connection.transport
    for _ in range(2):
        transport.close_connection(transport.establish_connection())
        opened = transport.establish_connection()
        channel = transport.create_channel(opened)
        queue(channel).declare()
        assert transport.queues.reads_own_topic(queue.name)
        assert [key.queue for key in channel.state.bindings] == [queue.name]
    transport.close_connection(opened)
    publish(connection, queue.name, "sent")
    with consume(connection, queue, received):
        received.wait(1)
    assert received.bodies == ["sent"]


def test_new_tasks_run_after_a_queue_was_deleted_with_its_tasks_held(connect: Connect) -> None:
    queue, connection = Queue("deleted-in-hand"), connect()
    held = Received(connection, keep=True)
    with connection.channel() as channel:
        queue(channel).declare()
    publish(connection, queue.name, *(f"old{number}" for number in range(12)), headers=TASK)
    with consume(connection, queue, held):
        held.wait(12)
        with connection.channel() as channel:
            queue(channel).delete()
            queue(channel).declare()
        new = [f"new{number}" for number in range(12)]
        publish(connection, queue.name, *new, headers=TASK)
        held.wait(24)
        assert sorted(held.bodies[12:]) == sorted(new)
        for message in held.messages[:12]:
            message.ack()  # These are of the deleted queue: nothing happens to the new ones.
        for message in held.messages[12:]:
            message.requeue()
        held.wait(36)
        assert sorted(held.bodies[24:]) == sorted(new)
