"""Bodies that are very long once they are decompressed spoil no messages behind them."""

from __future__ import annotations

import pytest

from mqlake.client import received
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_run
from mqlake.formats import record
from mqlake.protocol.messages.body_compression import compress

BODY = 10_000


def compressed(number: int, body: bytes) -> bytes:
    packed, bits = compress(body, "zlib", 9)
    return record.encode(topic="T", body=packed, queue_offset=number, sys_flag=bits)


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received, "MAX_BODY", BODY)
    monkeypatch.setattr(received, "MAX_BODIES", 2 * BODY)


def pulls(data: bytes) -> list[list[ReceivedMessage]]:
    """Return the messages of each pull; a pull begins where the one before ended."""
    found: list[list[ReceivedMessage]] = []
    while data:
        messages, end = decode_run(data, "broker-a", ReceivedMessage)
        found.append(messages)
        data = data[end:]
    return found


def test_bodies_for_which_there_is_no_memory_left_are_pulled_again() -> None:
    bodies = [bytes(BODY - 1)] * 3 + [b"short" * 10] * 2
    found = pulls(b"".join(compressed(*each) for each in enumerate(bodies)))
    assert [[one.queue_offset for one in each] for each in found] == [[0, 1], [2, 3, 4]]
    assert [one.body for each in found for one in each] == bodies
    assert not any(one.body_fault for each in found for one in each)


def test_a_body_that_is_too_long_alone_is_handed_over_with_its_fault() -> None:
    bodies = [b"one" * 9, bytes(BODY + 1), b"two" * 9]
    found = [one for each in pulls(b"".join(map(compressed, range(3), bodies))) for one in each]
    assert [one.queue_offset for one in found] == [0, 1, 2]
    assert [bool(one.body_fault) for one in found] == [False, True, False]
