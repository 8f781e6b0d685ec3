"""QueryRoute answers where the queues of a topic are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.grpc.messages import (
    Address,
    AddressScheme,
    Code,
    Endpoints,
    MessageType,
    Permission,
    QueryAssignmentRequest,
    QueryRouteRequest,
)
from mqlake.protocol.bodies.route import QueueData
from mqlake.proxy import topic_queues
from mqlake.proxy.consuming import assignments
from mqlake.proxy.topic_queues import queues_of
from tests import simulated
from tests.proxy.serving import named, serving

USED = Endpoints(
    scheme=AddressScheme.DOMAIN_NAME, addresses=[Address(host="mq.example.com", port=18081)]
)


def test_lists_the_queues_at_the_endpoints_that_the_client_used(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", "FIFO", queues=2)
            request = QueryRouteRequest(topic=named("T"), endpoints=USED)
            found = await calls.ask("QueryRoute", request)
            assert found.status.code == Code.OK
            assert [queue.id for queue in found.message_queues] == [0, 1]
            for queue in found.message_queues:
                assert queue.topic.name == "T"
                assert queue.permission == Permission.READ_WRITE
                assert queue.broker.name == "broker-a"
                assert queue.broker.endpoints == USED
                assert list(queue.accept_message_types) == [MessageType.FIFO]

    simulated.run(run())


def test_a_topic_without_a_type_accepts_normal_messages_and_a_mixed_one_four_types(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("plain")
            calls.topic("mixed", "MIXED")
            found = await calls.ask("QueryRoute", QueryRouteRequest(topic=named("plain")))
            assert list(found.message_queues[0].accept_message_types) == [MessageType.NORMAL]
            assert found.message_queues[0].broker.endpoints.addresses[0].port == 8081
            found = await calls.ask("QueryRoute", QueryRouteRequest(topic=named("mixed")))
            assert list(found.message_queues[0].accept_message_types) == [1, 2, 3, 4]

    simulated.run(run())


def test_refuses_topics_that_do_not_exist_and_names_that_are_none(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            for name, code in (
                ("missing", Code.TOPIC_NOT_FOUND),
                ("", Code.ILLEGAL_TOPIC),
                ("a b", Code.ILLEGAL_TOPIC),
                ("SCHEDULE_TOPIC_XXXX", Code.ILLEGAL_TOPIC),
            ):
                found = await calls.ask("QueryRoute", QueryRouteRequest(topic=named(name)))
                assert found.status.code == code, name

    simulated.run(run())


def test_a_call_without_a_client_id_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            found = await calls.ask("QueryRoute", QueryRouteRequest(topic=named("T")), "")
            assert found.status.code == Code.CLIENT_ID_REQUIRED

    simulated.run(run())


def test_queues_to_read_only_come_first() -> None:
    data = QueueData("a", read_queue_nums=3, write_queue_nums=2, perm=6)
    assert list(queues_of(data)) == [
        (0, Permission.READ),
        (1, Permission.READ_WRITE),
        (2, Permission.READ_WRITE),
    ]
    data = QueueData("a", read_queue_nums=1, write_queue_nums=2, perm=2)
    assert list(queues_of(data)) == [(0, Permission.WRITE), (1, Permission.WRITE)]
    data = QueueData("a", read_queue_nums=2, write_queue_nums=2, perm=0)
    assert list(queues_of(data)) == [(0, Permission.NONE), (1, Permission.NONE)]


def test_endpoints_that_would_fill_the_memory_are_refused(tmp_path: Path) -> None:
    """Each queue in the response has the endpoints."""

    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", queues=600)
            many = Endpoints(addresses=[Address(host="h" * 100, port=1)] * 50)
            request = QueryRouteRequest(topic=named("T"), endpoints=many)
            found = await calls.ask("QueryRoute", request)
            assert found.status.code == Code.ILLEGAL_ACCESS_POINT
            request = QueryRouteRequest(topic=named("T"))
            for authority, host, port in (
                ("mq.example.com:18081", "mq.example.com", 18081),
                ("mq.example.com", "mq.example.com", 8081),
                ("[::1]:9", "::1", 9),
                ("[::1]", "::1", 8081),
                ("h" * 300, "127.0.0.1", 8081),
            ):
                found = await calls.ask("QueryRoute", request, authority=authority)
                assert len(found.message_queues) == 600
                (address,) = found.message_queues[0].broker.endpoints.addresses
                assert (address.host, address.port) == (host, port)

    simulated.run(run())


@pytest.mark.parametrize("is_ordered", [False, True])
def test_one_call_at_a_time_lists_many_queues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ordered: bool
) -> None:
    """Endpoints that the client chooses are in each queue of a response."""
    begun: list[int] = []
    ended: list[int] = []

    def counted(data: QueueData) -> Iterator[tuple[int, Permission]]:
        assert len(begun) == len(ended) or data.read_queue_nums < 64
        begun.append(1)
        yield from queues_of(data)
        ended.append(1)

    async def run() -> None:
        module = assignments if is_ordered else topic_queues
        monkeypatch.setattr(module, "queues_of", counted)
        async with serving(tmp_path) as calls:
            calls.broker.state.groups.put(SubscriptionGroup("g", consume_message_orderly=True))
            for name, queues in (("many", 200), ("few", 4)):
                calls.topic(name, queues=queues)
            method, kind, more = "QueryRoute", QueryRouteRequest, dict[str, Any]()
            if is_ordered:
                method, kind = "QueryAssignment", QueryAssignmentRequest
                more["group"] = named("g")
            asked = [kind(topic=named(name), **more) for name in ("many", "many", "few", "many")]
            found = await asyncio.gather(*(calls.ask(method, each) for each in asked))
            listed = [each.assignments if is_ordered else each.message_queues for each in found]
            assert list(map(len, listed)) == [200, 200, 4, 200]

    simulated.run(run())
