"""The queues of a route."""

from __future__ import annotations

from tests.client.messages import route


def test_queues_of_brokers_without_a_master_are_read_only() -> None:
    found = route(b=1, a=2, slave=1)
    assert [queue.broker_name for queue in found.write_queues] == ["a", "a", "b"]
    assert [queue.broker_name for queue in found.read_queues] == ["a", "a", "b", "slave"]
