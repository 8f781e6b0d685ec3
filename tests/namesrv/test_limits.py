"""What brokers and operators may register, and what they are told when it is too much."""

from __future__ import annotations

import asyncio

import pytest

from mqlake.formats.config.topics import Topic
from mqlake.namesrv.routes import RouteTable
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.bodies.route import QueueData, TopicQueueMappingInfo, TopicRouteData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.slices import run_at_once
from tests import simulated
from tests.broker.strangers import ClientFrom
from tests.namesrv.asking import PATIENCE, Asking, running
from tests.namesrv.registrations import place, registration

MANY = NamesrvSettings()
FEW = NamesrvSettings(max_topic_nums=10, max_broker_nums=2, max_address_share=100)


def test_topics() -> None:
    routes = RouteTable()
    names = [f"T{number}" for number in range(8)]
    run_at_once(routes.register(registration(*names), FEW, 0))
    assert len(routes.topics) == 10, "two are the broker's own"
    with pytest.raises(RemotingError, match="maxTopicNums"):
        run_at_once(routes.register(registration(*names, "one more", version=2), FEW, 0))
    assert routes.find("one more", FEW) is None
    with pytest.raises(RemotingError, match="maxTopicNums"):
        run_at_once(routes.register(registration("T0", at=place("h:2", "b")), FEW, 0))
    run_at_once(routes.register(registration(*names, version=3), FEW, 0))
    mapping = {"T0": TopicQueueMappingInfo("T0", bname="a", curr_id_map={0: 0})}
    with pytest.raises(RemotingError, match="maxTopicNums"):
        run_at_once(routes.register(registration(*names, version=4, mappings=mapping), FEW, 0))
    run_at_once(routes.unregister(place()))
    assert not len(routes.topics)
    run_at_once(routes.register(registration(*names[:7], mappings=mapping), FEW, 0))
    assert len(routes.topics) == 10
    routes.topics.delete("T0")
    assert len(routes.topics) == 8


def test_brokers() -> None:
    routes = RouteTable()
    for number in range(2):
        at = place(f"h:{number}", f"b{number}")
        run_at_once(routes.register(registration("T", at=at), FEW, 0))
    with pytest.raises(RemotingError, match="maxBrokerNums"):
        run_at_once(routes.register(registration("T", at=place("h:3", "b3")), FEW, 0))
    run_at_once(routes.register(registration("T", at=place("h:1", "b1"), version=2), FEW, 0))


def test_a_broker_counts_once_for_each_of_its_names() -> None:
    routes = RouteTable()
    for name in ("b1", "b2"):
        run_at_once(routes.register(registration("T", at=place("h:1", name)), FEW, 0))
    with pytest.raises(RemotingError, match="maxBrokerNums"):
        run_at_once(routes.register(registration("T", at=place("h:1", "b3")), FEW, 0))
    assert routes.brokers.by_name.keys() == {"b1", "b2"}
    run_at_once(routes.register(registration("T", at=place("h:1", "b2"), version=2), FEW, 0))
    run_at_once(routes.unregister(place("h:1", "b2")))
    assert len(routes.brokers.live) == 1
    run_at_once(routes.lose(None))
    assert not routes.brokers.by_name
    assert not routes.brokers.live


def test_a_broker_that_another_one_displaces_ends_with_all_its_names() -> None:
    """It stays alive under its other names, and is gone with its connection."""
    routes, connection = RouteTable(), object()
    run_at_once(routes.register(registration("T", at=place("h:1"), state=2), MANY, 0))
    for name in ("b", "a"):
        at = place("h:2", name)
        run_at_once(routes.register(registration("T", at=at, connection=connection), MANY, 0))
    assert routes.brokers.by_name["a"].broker_addrs == {0: "h:1"}
    assert routes.brokers.by_name["b"].broker_addrs == {0: "h:2"}
    run_at_once(routes.lose(connection))
    assert routes.brokers.by_name.keys() == {"a"}


def test_names_that_are_too_long() -> None:
    routes = RouteTable()
    with pytest.raises(RemotingError, match="exceeds 255 characters"):
        run_at_once(routes.register(registration(Topic("x" * 256)), FEW, 0))
    with pytest.raises(RemotingError, match="names and addresses"):
        run_at_once(routes.register(registration("T", at=place("h:1", "x" * 20_000)), FEW, 0))
    assert not routes.brokers.by_name


def test_values() -> None:
    async def main() -> None:
        async with running(maxKvConfigNums=2, maxKvConfigSize=1024, maxAddressShare=100) as names:
            put = RequestCode.PUT_KV_CONFIG
            for key in ("a", "b", "a"):
                await names.ask(put, {"namespace": "n", "key": key, "value": key})
            fields = {"namespace": "n", "key": "c", "value": "c"}
            assert "maxKvConfigNums" in (await names.fails(put, fields))[1]
            fields = {"namespace": "n", "key": "a", "value": "x" * 1024}
            assert "maxKvConfigSize" in (await names.fails(put, fields))[1]
            await names.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": "n", "key": "b"})
            await names.ask(put, {"namespace": "n", "key": "c", "value": "c"})

    simulated.run(main())


def test_a_namespace_ends_with_its_last_value() -> None:
    async def main() -> None:
        async with running(kvConfigPath="") as names:
            for number in range(3):
                for code in (RequestCode.PUT_KV_CONFIG, RequestCode.DELETE_KV_CONFIG):
                    fields = {"namespace": f"n{number}", "key": "k", "value": "v"}
                    await names.ask(code, fields)
            table = RequestCode.GET_KVLIST_BY_NAMESPACE
            assert (await names.fails(table, {"namespace": "n0"}))[0] == 22
            fields = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "b:4"}
            await names.ask(RequestCode.PUT_KV_CONFIG, fields)
            await names.ask(RequestCode.DELETE_KV_CONFIG, fields)
            found = await names.ask(table, {"namespace": "ORDER_TOPIC_CONFIG"})
            assert found.body == b'{"table":{}}', "brokers hear that no topic is ordered"

    simulated.run(main())


async def fill_values(names: Asking) -> None:
    for number in range(100):
        fields = {"namespace": "n", "key": f"k{number}", "value": "x" * 20}
        await names.ask(RequestCode.PUT_KV_CONFIG, fields)


def test_the_values_of_one_client_leave_room_for_others() -> None:
    async def main() -> None:
        for limit in ({"maxKvConfigNums": 20}, {"maxKvConfigSize": 1024}):
            async with running(**limit) as names:
                put = RequestCode.PUT_KV_CONFIG
                with pytest.raises(RemotingError, match="maxAddressShare"):
                    await fill_values(names)
                other = ClientFrom("127.0.0.2")
                fields = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "b:4"}
                await other.call(names.address, request(put, fields), PATIENCE)
                await other.close()
                await names.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": "n", "key": "k0"})
                await names.ask(put, {"namespace": "n", "key": "k0", "value": "x" * 20})

    asyncio.run(main())


async def fill_topics(names: Asking) -> None:
    body = encode_body(TopicRouteData([QueueData("a", 1, 1, 6)], []))
    for number in range(30):
        fields = {"topic": f"added-{number}"}
        await names.ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, fields, body)


def test_topics_that_a_client_adds_to_a_broker_count_to_the_client() -> None:
    async def main() -> None:
        async with running(maxTopicNums=20) as names:
            broker = Asking(names.server, names.address, names.clock)
            broker.client = ClientFrom("127.0.0.2")
            await broker.register()
            with pytest.raises(RemotingError, match="maxAddressShare"):
                await fill_topics(names)
            listed = await names.json(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
            assert len(listed["topicList"]) == 3 + 10, "10 are the share of one client"
            await broker.register(broker_name="b", broker_addr="h:3")
            await broker.client.close()

    asyncio.run(main())


def test_a_topic_that_its_broker_registers_counts_to_the_client_that_added_it_no_longer() -> None:
    routes = RouteTable()
    run_at_once(routes.register(registration(), FEW, 0))
    routes.register_topic("T", [QueueData("a", 1, 1, 6)], None)
    assert (routes.topics.count_of("a"), routes.topics.added_by("unknown")) == (2, 1)
    routes.register_topic("T", [QueueData("a", 2, 2, 6)], None)
    assert (routes.topics.count_of("a"), routes.topics.added_by("unknown")) == (2, 1)
    run_at_once(routes.register(registration("T", version=2), FEW, 0))
    assert (routes.topics.count_of("a"), routes.topics.added_by("unknown")) == (3, 0)
    routes.register_topic("U", [QueueData("a", 1, 1, 6)], None)
    routes.topics.delete("U")
    assert (len(routes.topics), routes.topics.added_by("unknown")) == (3, 0)


def test_a_broker_registers_static_topics_of_its_own_name_only() -> None:
    routes = RouteTable()
    mappings = {
        name: TopicQueueMappingInfo(name, bname=bname, curr_id_map={0: 0})
        for name, bname in (("T0", "a"), ("T1", "other"), ("missing", "a"))
    }
    run_at_once(routes.register(registration("T0", "T1", mappings=mappings), FEW, 0))
    assert routes.topics.mappings.keys() == {"T0", "missing"}
    assert (len(routes.topics), routes.topics.count_of("a")) == (6, 6)
    run_at_once(routes.unregister(place()))
    assert not routes.topics.mappings
    assert not len(routes.topics)


def test_static_topics_without_queues_count_too() -> None:
    mappings = {f"M{number}": TopicQueueMappingInfo(bname="a") for number in range(9)}
    routes = RouteTable()
    with pytest.raises(RemotingError, match="maxTopicNums"):
        run_at_once(routes.register(registration(mappings=mappings), FEW, 0))
    mappings = {"x" * 256: TopicQueueMappingInfo(bname="a")}
    with pytest.raises(RemotingError, match="exceeds 255 characters"):
        run_at_once(routes.register(registration(mappings=mappings), FEW, 0))
