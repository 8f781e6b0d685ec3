"""Mappings of static topics: which are accepted, kept, registered and answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlake.formats import fastjson
from mqlake.protocol.bodies.static_topics import decode_mapped_topic
from mqlake.protocol.body import encode_unquoted
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import CreateTopicHeader, TopicNameHeader
from mqlake.protocol.logic_queues.mapping import MAX_STRETCHES
from tests import simulated
from tests.broker.running import Running, running
from tests.broker.static_topics.pairs import (
    TOPIC,
    A,
    B,
    item,
    mapping,
    moved,
    put,
    sent,
    two_brokers,
)


async def answered_mapping(broker: Running, *, lo: bool | None = True) -> Any:
    answer = await broker.ask(RequestCode.GET_TOPIC_CONFIG, TopicNameHeader(topic=TOPIC, lo=lo))
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return decode_mapped_topic(answer.body).mapping


def test_a_mapping_is_kept_answered_and_survives_a_restart(tmp_path: Path) -> None:
    wanted = mapping(A, {1: [item(A, queue=1)], 0: [item(A)]}, total=2)

    async def create() -> None:
        async with running(tmp_path) as broker:
            assert (await put(broker, wanted, queues=2)).code == ResponseCode.SUCCESS
            assert await answered_mapping(broker) == wanted
            assert await answered_mapping(broker, lo=None) is None
            text = (tmp_path / "config" / "topicQueueMapping.json").read_text()
            kept = fastjson.loads(text.encode())
            assert isinstance(kept, dict)
            assert list(kept) == ["dataVersion", "topicQueueMappingInfoMap"]
            assert "\t\t\t\t0:[" in text.replace("\n", "")

    async def open_again() -> None:
        async with running(tmp_path) as broker:
            assert await answered_mapping(broker) == wanted
            answer = await broker.ask(
                RequestCode.DELETE_TOPIC_IN_BROKER, TopicNameHeader(topic=TOPIC)
            )
            assert answer.code == ResponseCode.SUCCESS
            assert TOPIC not in broker.state.static_topics
        async with running(tmp_path) as broker:
            assert TOPIC not in broker.state.static_topics

    simulated.run(create())
    simulated.run(open_again())


BAD = {
    "another broker": mapping(B, {}),
    "another topic": mapping(A, {}, topic="Other"),
    "negative total": mapping(A, {}, total=-1),
    "huge total": mapping(A, {}, total=1 << 40),
    "negative epoch": mapping(A, {}, epoch=-1),
    "huge epoch": mapping(A, {}, epoch=1 << 80),
    "no scope": mapping(A, {}, scope=""),
    "long scope": mapping(A, {}, scope="s" * 300),
    "negative queue": mapping(A, {-1: [item(A)]}),
    "queue outside": mapping(A, {1: [item(A)]}),
    "negative physical queue": mapping(A, {0: [item(A, queue=-1)]}),
    "huge physical queue": mapping(A, {0: [item(A, queue=1 << 33)]}),
    "no broker": mapping(A, {0: [item("")]}),
    "long broker": mapping(A, {0: [item("b" * 300)]}),
    "negative generation": mapping(A, {0: [item(A, gen=-1)]}),
    "equal generations": mapping(A, {0: [item(A), item(B, gen=0, logic=100)]}),
    "falling offsets": mapping(A, {0: [item(A, logic=5), item(B, gen=1, logic=5)]}),
    "overlapping": mapping(A, {0: [item(A, end=9), item(B, gen=1, logic=9)]}),
    "undecided in the middle": mapping(A, {0: [item(A, logic=-1), item(B, gen=1, logic=9)]}),
    "offset below -1": mapping(A, {0: [item(A, logic=-2)]}),
    "huge offset": mapping(A, {0: [item(A, logic=1 << 63)]}),
    "many": mapping(A, {0: [item(A, gen=n, logic=n) for n in range(MAX_STRETCHES + 1)]}),
    "a map of ids": mapping(A, {}, curr_id_map={0: 1}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_mapping_is_refused_and_changes_nothing(tmp_path: Path, name: str) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            answer = await put(broker, BAD[name])
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert TOPIC in (answer.remark or "")
            assert (await put(broker, BAD[name], force=True)).code == answer.code
            assert TOPIC not in broker.state.topics
            assert TOPIC not in broker.state.static_topics

    simulated.run(run())


def test_bodies_that_are_no_mapping_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            header = CreateTopicHeader(
                topic=TOPIC,
                read_queue_nums=1,
                write_queue_nums=1,
                perm=6,
                topic_filter_type="SINGLE_TAG",
            )
            code = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
            long = encode_unquoted(mapping(A, {}, scope="s" * (1 << 20)))
            for body in (b"", b"{", b"[]", b'{"hostedQueues":{"x":[]}}', b"{0:" * 5000, long):
                answer = await broker.ask(code, header, body)
                assert answer.code != ResponseCode.SUCCESS, body[:40]
            assert TOPIC not in broker.state.topics

    simulated.run(run())


def test_a_mapping_follows_the_one_before(tmp_path: Path) -> None:
    first = mapping(A, {0: [item(A)]}, epoch=5)

    async def refused(broker: Running, wanted: Any, words: str) -> None:
        answer = await put(broker, wanted)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert words in (answer.remark or "")
        assert await answered_mapping(broker) == first

    async def run() -> None:
        async with running(tmp_path) as broker:
            await put(broker, first)
            await refused(broker, mapping(A, {0: [item(A)]}, epoch=4), "small epoch")
            await refused(broker, mapping(A, {}, epoch=5), "equal epoch with null data")
            await refused(broker, mapping(A, {0: []}, epoch=6), "null or empty")
            await refused(broker, mapping(A, {0: [item(A)]}, epoch=6, scope="x"), "scope")
            await refused(broker, mapping(A, {0: [item(A, queue=3)]}, epoch=6), "another queue")
            await refused(broker, mapping(A, {0: [item(A, logic=7)]}, epoch=6), "logic offset")
            longer = {0: [item(A), item(B, gen=1, logic=9)]}
            await refused(broker, mapping(A, longer, epoch=5), "leader is different")
            # What is not named stays, and force overrules the epoch.
            second = mapping(A, {}, epoch=6)
            assert (await put(broker, second)).code == ResponseCode.SUCCESS
            assert (await answered_mapping(broker)).hosted_queues == first.hosted_queues
            forced = mapping(A, {0: [item(A, queue=3)]}, epoch=1)
            assert (await put(broker, forced, queues=4, force=True)).code == ResponseCode.SUCCESS
            assert await answered_mapping(broker) == forced

    simulated.run(run())


def test_a_damaged_file_keeps_its_topic_from_being_served(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await put(broker, mapping(A, {0: [item(A)]}))
        path = tmp_path / "config" / "topicQueueMapping.json"
        path.write_text(path.read_text().replace('"queueId":0', '"queueId":-7'))
        async with running(tmp_path) as broker:
            answer = await broker.send(_to_static())
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "damaged" in (answer.remark or "")
            assert broker.state.static_topics.registered(TOPIC) is None
            assert (await put(broker, mapping(A, {0: [item(A)]}))).code == ResponseCode.SUCCESS
            assert await sent(broker, 2) == [0, 1]

    simulated.run(run())


def _to_static() -> Any:
    from tests.broker.running import to

    return to(TOPIC)


def test_name_servers_know_a_mapping_when_it_is_answered(tmp_path: Path) -> None:
    async def run() -> None:
        async with two_brokers(tmp_path) as (a, b):
            total = {0: [item(A)]}
            await put(a, mapping(A, total, total=2))
            route = await b.state.names.route(TOPIC)
            assert route
            assert route.topic_queue_mapping_by_broker
            assert route.topic_queue_mapping_by_broker[A].curr_id_map == {0: 0}
            await put(b, mapping(B, {1: [item(B, queue=3)]}, total=2), queues=4)
            route = await a.state.names.route(TOPIC)
            assert route
            assert route.topic_queue_mapping_by_broker
            infos = route.topic_queue_mapping_by_broker
            assert {name: info.curr_id_map for name, info in infos.items()} == {
                A: {0: 0},
                B: {1: 3},
            }

    simulated.run(run())


def test_stretches_without_messages_and_past_leaders_are_removed(tmp_path: Path) -> None:
    async def run() -> None:
        async with moved(tmp_path, count=0) as (a, b):
            cleaning = _cleaning(b)
            await cleaning.clean()
            known = await answered_mapping(b)
            assert [each.gen for each in known.hosted_queues[0]] == [1]
            # Moved on to A again: A's own new stretch is not what B leads any more.
            queues = {0: [item(B, gen=1, logic=10_000), item(A, gen=2, logic=20_000, queue=1)]}
            for broker, name in ((a, A), (b, B)):
                answer = await put(broker, mapping(name, queues, epoch=3), queues=2)
                assert answer.code == ResponseCode.SUCCESS, answer.remark
            await cleaning.clean()
            assert 0 in (await answered_mapping(b)).hosted_queues
            stale = mapping(B, {0: [item(B, gen=1, logic=10_000), item("c", gen=2, logic=2**40)]})
            b.state.static_topics.put(stale.__class__(**{**_fields(stale), "epoch": 3}))
            await cleaning.clean()
            assert (await answered_mapping(b)).hosted_queues == {}

    simulated.run(run())


def test_stretches_with_messages_stay(tmp_path: Path) -> None:
    async def run() -> None:
        async with moved(tmp_path) as (_, b):
            before = await answered_mapping(b)
            await _cleaning(b).clean()
            assert await answered_mapping(b) == before

    simulated.run(run())


def _cleaning(broker: Running) -> Any:
    from mqlake.broker.static_topics.clean_up import StaticTopicCleaning

    return StaticTopicCleaning(broker.state, broker.runtime)


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}
