"""Requests to a name server, over the wire."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from mqlake.formats.config import DataVersion
from mqlake.protocol.bodies.route import (
    BrokerMemberGroupBody,
    ClusterInfo,
    QueueData,
    TopicRouteData,
)
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import RegisterBrokerHeader
from tests import simulated
from tests.namesrv.asking import BODY, PATIENCE, Asking, running
from tests.until import until

BROKER = {"brokerName": "a", "brokerAddr": "h:1", "clusterName": "c", "brokerId": "0"}


@pytest.mark.parametrize("form", [{}, {"compressed": True}, {"silently": True}])
def test_clients_find_what_a_broker_registered(form: dict[str, bool]) -> None:
    async def run() -> None:
        async with running() as names:
            await names.register(**form)
            route = await names.json(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
            assert route == {
                "queueDatas": [
                    {
                        "brokerName": "a", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6,
                        "topicSysFlag": 0,
                    }
                ],
                "brokerDatas": [
                    {
                        "cluster": "c", "brokerName": "a", "brokerAddrs": {"0": "h:1"},
                        "enableActingMaster": False,
                    }
                ],
                "filterServerTable": {},
            }  # fmt: skip
            code, remark = await names.fails(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "X"})
            assert code == ResponseCode.TOPIC_NOT_EXIST
            assert remark == "No topic route info in name server for the topic: X"

    simulated.run(run())


@pytest.mark.parametrize(
    ("version", "fields", "quoted"),
    [(400, {}, False), (400, {"acceptStandardJsonOnly": "true"}, True), (401, {}, True)],
)
def test_old_clients_get_fastjsons_maps(version: int, fields: dict[str, str], quoted: bool) -> None:
    async def run() -> None:
        async with running() as names:
            await names.register()
            code = RequestCode.GET_ROUTEINFO_BY_TOPIC
            answer = await names.ask(code, {"topic": "T", **fields}, version=version)
            assert (b'{"0":"h:1"}' if quoted else b'{0:"h:1"}') in bytes(answer.body)

    simulated.run(run())


def test_lists() -> None:
    async def run() -> None:
        async with running() as names:
            await names.register()
            everything = await names.json(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
            assert everything == {"topicList": ["T", "a", "c"]}
            code = RequestCode.GET_TOPICS_BY_CLUSTER
            assert (await names.json(code, {"cluster": "c"})) == everything
            assert (await names.json(code, {"cluster": "x"})) == {"topicList": []}
            system = await names.json(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
            assert system == {"topicList": ["c", "a"], "brokerAddr": "h:1"}
            for code in (
                RequestCode.GET_UNIT_TOPIC_LIST,
                RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
                RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
            ):
                assert (await names.json(code)) == {"topicList": []}
            body = (await names.ask(RequestCode.GET_BROKER_CLUSTER_INFO)).body
            cluster = decode_body(ClusterInfo, body)
            assert cluster.cluster_addr_table == {"c": ["a"]}
            assert cluster.broker_addr_table["a"].broker_addrs == {0: "h:1"}
            assert b'{0:"h:1"}' in bytes(body)  # as upstream writes it, whoever asks
            fields = {"clusterName": "c", "brokerName": "a"}
            body = (await names.ask(RequestCode.GET_BROKER_MEMBER_GROUP, fields)).body
            group = decode_body(BrokerMemberGroupBody, body).broker_member_group
            assert group.broker_addrs == {0: "h:1"}

    simulated.run(run())


def test_lists_may_be_switched_off() -> None:
    async def run() -> None:
        async with running(enableAllTopicList="false", enableTopicList="false") as names:
            for code, fields in (
                (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {}),
                (RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": "c"}),
                (RequestCode.GET_UNIT_TOPIC_LIST, {}),
            ):
                assert await names.fails(code, fields) == (ResponseCode.SYSTEM_ERROR, "disable")

    simulated.run(run())


def test_a_broker_asks_whether_it_has_to_register_again_and_goes() -> None:
    async def run() -> None:
        async with running() as names:
            code, version = RequestCode.QUERY_DATA_VERSION, encode_body(DataVersion(3, 0, 9))
            answer = await names.ask(code, BROKER, version)
            assert (answer.fields, answer.body) == ({"changed": "true"}, b"")
            await names.register()
            answer = await names.ask(code, BROKER, version)
            assert (answer.fields, answer.body) == ({"changed": "false"}, version)
            assert (await names.ask(code, BROKER, b"{}")).fields == {"changed": "true"}
            await names.ask(RequestCode.UNREGISTER_BROKER, BROKER)
            assert (await names.ask(code, BROKER, version)).fields == {"changed": "true"}

    simulated.run(run())


def test_a_slave_is_told_its_master() -> None:
    async def run() -> None:
        async with running() as names:
            await names.register()
            answer = await names.register(broker_id=1, broker_addr="h:3")
            assert answer.fields == {"masterAddr": "h:1", "haServerAddr": "h:2"}

    simulated.run(run())


def test_damaged_registrations_are_refused() -> None:
    async def with_wrong_form(names: Asking) -> None:
        header = RegisterBrokerHeader(
            broker_name="a", broker_addr="h:1", cluster_name="c", broker_id=0, ha_server_addr="",
            compressed=True,
        )  # fmt: skip
        asked = request(RequestCode.REGISTER_BROKER, header, BODY.encode())
        with pytest.raises(RemotingError, match="the compressed body"):
            await names.client.call(names.address, asked, PATIENCE)

    async def both() -> None:
        async with running() as names:
            with pytest.raises(RemotingError, match="crc32 not match"):
                await names.register(body_crc32=5)
            await with_wrong_form(names)

    simulated.run(both())


def test_releases_before_3_register_topics_only() -> None:
    async def run() -> None:
        async with running() as names:
            fields = BROKER | {"haServerAddr": ""}
            body = encode_body(BODY.topic_config_serialize_wrapper)
            await names.ask(RequestCode.REGISTER_BROKER, fields, body, version=36)
            await names.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})

    simulated.run(run())


def test_a_broker_whose_connection_is_closed_is_gone() -> None:
    async def run() -> None:
        async with running() as names, running() as other:
            other.address = names.address
            for _ in range(3):
                await other.register()
            await names.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
            await other.client.close()
            body = b"x"
            while body != b'{"brokerAddrTable":{},"clusterAddrTable":{}}':  # until the time limit
                body = (await names.ask(RequestCode.GET_BROKER_CLUSTER_INFO)).body

    simulated.run(run())


def test_a_silent_broker_is_gone_and_its_connection_closed() -> None:
    async def run() -> None:
        async with running(scanNotActiveBrokerInterval=10) as names:
            await names.register(heartbeat_timeout_millis=1000)
            peer = await names.client.connect(names.address)
            names.clock.now += 900
            heartbeat = BROKER | {"heartbeatTimeoutMills": "1000"}
            await names.ask(RequestCode.BROKER_HEARTBEAT, heartbeat)
            names.clock.now += 900
            await asyncio.sleep(0.05)  # a few scans, which find nothing
            await names.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
            names.clock.now += 200
            await until(lambda: peer.is_closed)
            code, _ = await names.fails(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
            assert code == ResponseCode.TOPIC_NOT_EXIST

    simulated.run(run())


def test_write_permission() -> None:
    async def run() -> None:
        async with running() as names:
            await names.register()
            fields = {"brokerName": "a"}
            wiped = await names.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, fields)
            assert wiped.fields == {"wipeTopicCount": "3"}
            route = await names.json(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
            assert route["queueDatas"][0]["perm"] == 4
            added = await names.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, fields)
            assert added.fields == {"addTopicCount": "3"}

    simulated.run(run())


def test_a_topic_comes_and_goes_alone() -> None:
    async def run() -> None:
        async with running() as names:
            await names.register()
            body = encode_body(TopicRouteData([QueueData("a", 1, 1, 6)]))
            await names.ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "New"}, body)
            find = RequestCode.GET_ROUTEINFO_BY_TOPIC
            await names.ask(find, {"topic": "New"})
            delete = RequestCode.DELETE_TOPIC_IN_NAMESRV
            await names.ask(delete, {"topic": "New", "clusterName": "x"})
            await names.ask(find, {"topic": "New"})
            await names.ask(delete, {"topic": "New", "clusterName": "c"})
            await names.fails(find, {"topic": "New"})
            await names.ask(delete, {"topic": "T"})
            await names.fails(find, {"topic": "T"})

    simulated.run(run())


def test_no_routes_right_after_the_start_if_so_wished() -> None:
    async def run() -> None:
        async with running(needWaitForService=True, waitSecondsForService=10) as names:
            await names.register()
            find = RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"}
            names.clock.now += 9_999
            assert await names.fails(*find) == (1, "name server not ready")
            names.clock.now += 1
            await names.ask(*find)

    simulated.run(run())


ORDER = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T"}


def test_kv_configuration_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "below" / "kvConfig.json"

    async def run() -> None:
        async with running(kvConfigPath=str(path)) as names:
            assert await names.fails(RequestCode.GET_KV_CONFIG, ORDER) == (
                ResponseCode.QUERY_NOT_FOUND,
                "No config item, Namespace: ORDER_TOPIC_CONFIG Key: T",
            )
            code = RequestCode.GET_KVLIST_BY_NAMESPACE
            assert (await names.fails(code, ORDER))[0] == ResponseCode.QUERY_NOT_FOUND
            for value in ("a:2", "a:4;b:4"):
                await names.ask(RequestCode.PUT_KV_CONFIG, ORDER | {"value": value})
            await names.ask(RequestCode.PUT_KV_CONFIG, ORDER | {"key": "U", "value": "ü"})
        async with running(kvConfigPath=str(path)) as names:
            answer = await names.ask(RequestCode.GET_KV_CONFIG, ORDER)
            assert answer.fields == {"value": "a:4;b:4"}
            assert await names.json(code, ORDER) == {"table": {"T": "a:4;b:4", "U": "ü"}}
            await names.ask(RequestCode.DELETE_KV_CONFIG, ORDER)
        assert json.loads(path.read_text()) == {"configTable": {"ORDER_TOPIC_CONFIG": {"U": "ü"}}}

    simulated.run(run())


@pytest.mark.parametrize("content", [b"", b"[]", b'{"configTable":{"a":1}}', b"\xff"])
def test_a_damaged_kv_file_is_said(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kv.json"
    path.write_bytes(content)

    async def run() -> None:
        with pytest.raises(Exception, match=f"{path}: .*repair or remove the file"):
            async with running(kvConfigPath=str(path)):
                pass

    simulated.run(run())


def test_ordered_topics_are_told_to_brokers_and_clients() -> None:
    async def run() -> None:
        async with running(orderMessageEnable=True) as names:
            await names.ask(RequestCode.PUT_KV_CONFIG, ORDER | {"value": "a:4"})
            answer = await names.register()
            assert json.loads(bytes(answer.body)) == {"table": {"T": "a:4"}}
            code = RequestCode.GET_ROUTEINFO_BY_TOPIC
            assert (await names.json(code, {"topic": "T"}))["orderTopicConf"] == "a:4"
            assert "orderTopicConf" not in await names.json(code, {"topic": "a"})

    simulated.run(run())


def test_settings_are_told_changed_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.conf"

    async def run() -> None:
        async with running(configStorePath=str(path)) as names:
            text = bytes((await names.ask(RequestCode.GET_NAMESRV_CONFIG)).body).decode()
            assert "enableTopicList=true\n" in text
            body = b"enableTopicList=false\n# x\nunknown=1\nwaitSecondsForService = 7\n"
            await names.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body)
            assert not names.server.settings.enable_topic_list
            assert names.server.settings.wait_seconds_for_service == 7
            text = bytes((await names.ask(RequestCode.GET_NAMESRV_CONFIG)).body).decode()
            assert path.read_text() == text
            assert "enableTopicList=false\n" in text
            assert "unknown" not in text

    simulated.run(run())


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        (b"kvConfigPath=/x", ResponseCode.NO_PERMISSION, "black list"),
        (b"a=b\nconfigStorePath=/x", ResponseCode.NO_PERMISSION, "black list"),
        (b"listenPort=1", ResponseCode.NO_PERMISSION, "black list"),
        (b"enableTopicList=perhaps", ResponseCode.SYSTEM_ERROR, "enableTopicList"),
    ],
)
def test_some_changes_are_refused(body: bytes, code: int, reason: str) -> None:
    async def run() -> None:
        async with running() as names:
            before = names.server.settings
            with pytest.raises(RemotingError, match=reason) as caught:
                await names.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body)
            assert caught.value.code == code
            assert names.server.settings == before

    simulated.run(run())
