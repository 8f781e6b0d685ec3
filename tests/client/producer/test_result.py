"""The results of a batch."""

from __future__ import annotations

import pytest

from mqlake.client.producer.result import SendResult, SendResults, SendStatus
from tests.client.messages import QUEUE


def test_results_of_a_batch_are_made_when_they_are_asked_for() -> None:
    first = SendResult(SendStatus.SEND_OK, "k0", "o0,o1,o2", QUEUE, 7)
    results = SendResults(first, ["k0", "k1", "k2"], ["o0", "o1", "o2"])
    assert [(each.message_id, each.offset_message_id) for each in results] == [
        ("k0", "o0"),
        ("k1", "o1"),
        ("k2", "o2"),
    ]
    assert [each.queue_offset for each in results[1:]] == [8, 9]
    assert results[-1] == results[2]
    assert results == list(results)
    assert results != list(results)[:2]
    assert repr(results).startswith("[SendResult(")
    with pytest.raises(IndexError):
        results[3]
