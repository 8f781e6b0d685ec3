"""Producers and consumers for threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mqlake.client import ClosedError, Message
from mqlake.testing import broker


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
            found = [consumer.receive(30) for _ in range(151)]
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
