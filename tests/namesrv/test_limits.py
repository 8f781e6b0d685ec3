"""What brokers and operators may register, and what they are told when it is too much."""

from __future__ import annotations

import pytest

from mqlake.formats.config.topics import Topic
from mqlake.namesrv.routes import RouteTable
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.bodies.route import TopicQueueMappingInfo
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.slices import run_at_once
from tests import simulated
from tests.namesrv.asking import running
from tests.namesrv.registrations import place, registration

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


def test_names_that_are_too_long() -> None:
    routes = RouteTable()
    with pytest.raises(RemotingError, match="exceeds 255 characters"):
        run_at_once(routes.register(registration(Topic("x" * 256)), FEW, 0))
    with pytest.raises(RemotingError, match="names and addresses"):
        run_at_once(routes.register(registration("T", at=place("h:1", "x" * 20_000)), FEW, 0))
    assert not routes.brokers.by_name


def test_values() -> None:
    async def main() -> None:
        async with running(maxKvConfigNums=2, maxKvConfigSize=1024) as names:
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
