"""What must not stop a worker, lose a message or hang: poison, lost brokers, failed readers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("celery", reason="these tests need Celery: pip install 'mqlake[celery]'")

from kombu import Connection, Consumer, Queue

from mqlake.client import Message
from mqlake.client.consumer.simple_consumer import SimpleConsumer
from mqlake.client.errors import BrokerError
from mqlake.kombu.errors import UnavailableError
from mqlake.kombu.loop_thread import KombuThread
from mqlake.protocol.codes import ResponseCode
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.testing import RunningBroker
from tests.kombu.conftest import Connect
from tests.kombu.receiving import PATIENCE, Received, consume, publish
from tests.programs.forked import ForkedBroker
from tests.programs.processes import BrokerProcess

POISON = (
    # kombu's decoder of decimals raises an ArithmeticError.
    b'{"body": {"__type__": "decimal", "__value__": "x"}}',
    b'{"body": {"__type__": "uuid", "__value__": {"hex": 5}}}',
    b'{"body": "e30=", "properties": {"body_encoding": "rot13", "delivery_info": {}}}',
    b'{"body": "a", "properties": {"body_encoding": "base64", "delivery_info": {}}}',
    b'{"body": "e30=", "headers": [1], "properties": {"delivery_info": {}}}',
)


@pytest.fixture
def process(tmp_path: Path) -> Generator[BrokerProcess]:
    """Give a broker that can be killed and started again."""
    process = ForkedBroker(tmp_path / "store", tmp_path / "log", {})
    yield process
    process.kill()


def test_messages_that_nobody_can_read_are_set_aside(
    connect: Connect, broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with broker.producer() as producer:
        for body in POISON:
            producer.send(Message(topic="poisoned", body=body))
    connection = connect(visibility_timeout=3)
    received = Received(connection)
    with consume(connection, Queue("poisoned"), received):
        publish(connection, "poisoned", "x")
        received.wait(1)
        # None of the others comes again, and none ends the reader.
        received.nothing_more(4.5)
        publish(connection, "poisoned", "y")
        received.wait(2)
    assert received.bodies == ["x", "y"]
    found = [line for line in caplog.messages if "not kombu's" in line or "cannot read" in line]
    assert len(found) == len(POISON)


def test_a_cancelled_consumer_gives_back_what_waits(connect: Connect) -> None:
    connection = connect()
    publish(connection, "cancelled", *range(5))
    first = connect()
    received = Received(first)
    consumer = consume(first, Queue("cancelled"), received)
    consumer.consume()
    received.wait(1)
    deadline = time.monotonic() + PATIENCE
    while len(first.transport.arrivals) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    consumer.cancel()
    # The first connection stays open and is not drained any more.
    others = Received(connection)
    with consume(connection, Queue("cancelled"), others):
        others.wait(4)
    assert sorted(received.bodies + others.bodies) == list(range(5))


def test_an_acknowledgement_outlasts_the_broker(process: BrokerProcess) -> None:
    # A slow machine may need longer to start the broker again than a message is invisible.
    assert any(_acknowledges_late(process, visible) for visible in (8.0, 25.0, PATIENCE))


def _acknowledges_late(process: BrokerProcess, visible: float) -> bool:
    """Return whether that was done while the message was invisible; see that it stays away."""
    url, name = f"rocketmq://{process.name_server}/", f"outlasting-{visible:.0f}"
    with Connection(url, transport_options={"visibility_timeout": visible}) as connection:
        publish(connection, name, "x")
        received = Received(connection, keep=True)
        with consume(connection, Queue(name), received) as consumer:
            received.wait(1)
            arrived = time.monotonic()
            assert process.stop() == 0
            with pytest.raises(UnavailableError):
                received.messages[0].ack()
            process.start()
            deadline = time.monotonic() + PATIENCE
            while consumer.channel._window._late:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            if time.monotonic() > arrived + visible - 1:
                return False
            # It is redelivered neither now nor when its time is over.
            received.nothing_more(max(0.5, arrived + visible + 3 - time.monotonic()))
    return True


def test_a_failed_acknowledgement_in_advance_loses_no_message(
    connect: Connect, broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, queue = connect(visibility_timeout=25), Queue("early")
    tries: Counter[str] = Counter()
    confirmed: set[str] = set()
    acknowledge = SimpleConsumer.ack

    async def fail_at_first(self: Any, message: Any) -> None:
        tries[message.message_id] += 1
        if tries[message.message_id] <= 3:  # `Delivery.ack` then raises, and retries later.
            raise ConnectionFailedError("the connection was lost")
        await acknowledge(self, message)
        confirmed.add(message.message_id)

    monkeypatch.setattr(SimpleConsumer, "ack", fail_at_first)
    publish(connection, "early", "got")
    with connection.channel() as channel:
        deadline, message = time.monotonic() + PATIENCE, None
        while message is None:
            assert time.monotonic() < deadline
            message = queue(channel).get(no_ack=True)
        assert message.payload == "got"
        with broker.producer() as producer:
            producer.send(Message(topic="early", body=POISON[0]))
        publish(connection, "early", "consumed")
        received = Received(connection, keep=True)
        with Consumer(channel, [queue], callbacks=[received], no_ack=True):
            while len(confirmed) < 3:
                assert time.monotonic() < deadline
                with suppress(TimeoutError):
                    connection.drain_events(timeout=0.1)
    assert received.bodies == ["consumed"]


def test_consumers_and_senders_outlast_the_broker(process: BrokerProcess) -> None:
    with Connection(f"rocketmq://{process.name_server}/") as connection:
        received = Received(connection)
        with consume(connection, Queue("patient"), received):
            publish(connection, "patient", "before")
            received.wait(1)
            process.kill()
            with pytest.raises(UnavailableError):
                publish(connection, "patient", "lost")
            process.start()
            with Connection(f"rocketmq://{process.name_server}/") as registered:
                registered.ensure_connection(timeout=PATIENCE, interval_start=0.1)
            publish(connection, "patient", "after")
            # What was acknowledged just before the crash may come again (docs/pop.md).
            while "after" not in received.bodies:
                received.wait(len(received.bodies) + 1)
    assert received.bodies.count("after") == 1
    assert "lost" not in received.bodies


def test_a_reader_that_fails_fails_the_connection(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connect()
    received = Received(connection)
    with consume(connection, Queue("failing"), received):
        publish(connection, "failing", "x")
        received.wait(1)

        async def fail(*_: object) -> object:
            raise RuntimeError("a bug")

        monkeypatch.setattr(SimpleConsumer, "receive", fail)
        with pytest.raises(connection.connection_errors, match="a bug"):
            connection.drain_events(timeout=PATIENCE)


def test_a_refused_extension_ends_no_other(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connection = connect(visibility_timeout=3)
    publish(connection, "long", "a", "b")
    received = Received(connection, keep=True)
    extend = SimpleConsumer.change_invisible
    refused: list[Any] = []
    extended: Counter[str] = Counter()

    async def refuse_first(self: Any, message: Any, seconds: float) -> None:
        if not refused or message is refused[0]:
            refused.append(message)
            raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, "no such message")
        await extend(self, message, seconds)
        extended[message.message_id] += 1

    def others() -> int:
        return sum(extended.values()) - extended[refused[0].message_id]

    monkeypatch.setattr(SimpleConsumer, "change_invisible", refuse_first)
    with Consumer(connection.channel(), [Queue("long")], callbacks=[received], prefetch_count=4):
        received.wait(3)  # what was refused comes again
        # A pause of the machine may let the other one be redelivered, too.
        deadline, before = time.monotonic() + PATIENCE, others()
        while others() < before + 3:
            assert time.monotonic() < deadline
            with suppress(TimeoutError):
                connection.drain_events(timeout=0.1)
        assert len(refused) == 1
        line = f"message {refused[0].message_id} of long is not extended"
        assert len([each for each in caplog.messages if each.startswith(line)]) == 1
        for message in received.messages:
            message.ack()
    assert set(received.bodies) == {"a", "b"}


def test_ending_the_thread_leaves_nobody_waiting() -> None:
    thread, failures = KombuThread(), list[BaseException]()
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(3600)

    def wait() -> None:
        try:
            thread.run(work())
        except UnavailableError as error:
            failures.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert begun.wait(PATIENCE)
    thread.end()
    waiting.join(PATIENCE)
    assert len(failures) == 1
    with pytest.raises(UnavailableError):
        thread.run(work())
