"""Producers and consumers for threads."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from mqlake.client import ClosedError, Message
from mqlake.testing import broker
from tests.forked import in_child
from tests.until import PATIENCE


def test_threads_send_and_receive() -> None:
    before = set(threading.enumerate())
    with broker() as running, running.producer() as producer:
        messages = [Message(topic="t", body=b"%d" % number) for number in range(50)]
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(producer.send, messages))
        assert len({result.message_id for result in results}) == 50
        assert len(producer.send_many(messages)) == len(producer.send_batch(messages)) == 50
        producer.send_oneway(Message(topic="t", body=b"oneway"))
        with running.consumer("g", "t") as consumer:
            found = [consumer.receive(PATIENCE) for _ in range(151)]
            assert all(message and consumer.ack(message) for message in found)
            assert consumer.receive(0.05) is None
            consumer.commit()
            again = Message(topic="t", body=b"again")
            producer.send(again)
            for message in consumer:
                assert consumer.retry_later(message, 1)
                break
        with pytest.raises(ClosedError):
            consumer.commit()
    with pytest.raises(ClosedError):
        producer.send(messages[0])
    assert set(threading.enumerate()) <= before


def test_a_client_is_used_and_closed_inside_a_running_loop() -> None:
    """As in a cell of a notebook."""
    with broker() as running:

        async def cell() -> None:
            with running.producer() as producer, running.consumer("g", "t") as consumer:
                producer.send(Message(topic="t", body=b"x"))
                message = consumer.receive(60)
                assert message is not None
                assert consumer.ack(message)

        asyncio.run(cell())


def test_clients_of_a_parent_say_so_in_a_forked_child() -> None:
    with (
        broker() as running,
        running.producer() as producer,
        running.consumer("g", "t") as consumer,
    ):
        producer.send(Message(topic="t", body=b"x"))
        calls: dict[str, Callable[[], object]] = {
            "send": lambda: producer.send(Message(topic="t", body=b"x")),
            "send_many": lambda: producer.send_many([Message(topic="t", body=b"x")]),
            "send_oneway": lambda: producer.send_oneway(Message(topic="t", body=b"x")),
            "receive": lambda: consumer.receive(5),
            "receive for ever": consumer.receive,
            "commit": consumer.commit,
        }
        for name, call in calls.items():
            said = in_child(call)
            assert said.startswith("mqlake.client.errors.ClosedError:"), (name, said)
            assert f"opened by process {os.getpid()}; open it again in this process" in said
        for closes in (producer.close, consumer.close):
            assert in_child(closes) == "None"

        def own() -> object:
            with running.producer() as another:
                return another.send(Message(topic="t", body=b"child")).status

        assert in_child(own) == "SEND_OK"
        producer.send(Message(topic="t", body=b"parent"))
        assert consumer.receive(60) is not None
