"""Settings of a broker: one broker.conf for it and its store."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.broker.settings import (
    NOW,
    RESTART,
    WITHOUT_EFFECT,
    BrokerSettings,
    make_broker_settings,
)
from mqlake.errors import StoreError
from mqlake.store.settings import FlushDiskType

STOCK = """\
# the broker.conf that RocketMQ ships
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = ASYNC_FLUSH
"""


def test_the_file_that_rocketmq_ships(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(STOCK)

    settings = make_broker_settings(path)

    assert (settings.broker_cluster_name, settings.broker_name) == ("DefaultCluster", "broker-a")
    assert (settings.file_reserved_time, settings.delete_when) == (48, "04")
    assert settings.flush_disk_type is FlushDiskType.ASYNC_FLUSH


def test_a_name_that_is_not_known_warns() -> None:
    with pytest.warns(UserWarning, match="did you mean brokerClusterName"):
        assert (
            make_broker_settings({"brokerCluster": "x", "listenPort": "1234"}).listen_port == 1234
        )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_names_without_effect_are_accepted_in_silence(name: str) -> None:
    assert make_broker_settings({name: "true"}) == make_broker_settings({})


def test_a_name_is_a_setting_or_without_effect() -> None:
    assert not WITHOUT_EFFECT.keys() & (NOW | RESTART)


@pytest.mark.parametrize(
    ("given", "address", "listens"),
    [
        ({}, "127.0.0.1:10911", "127.0.0.1"),
        ({"brokerIP1": "10.0.0.5"}, "10.0.0.5:10911", "0.0.0.0"),
        ({"brokerIP1": "::1", "listenPort": "7"}, "[::1]:7", "::1"),
        ({"brokerIP1": "10.0.0.5", "bindAddress": "10.0.0.6"}, "10.0.0.5:10911", "10.0.0.6"),
    ],
)
def test_where_clients_reach_it(given: dict[str, str], address: str, listens: str) -> None:
    settings = make_broker_settings(given)

    assert settings.broker_address == address
    assert settings.listen_address == listens


def test_name_servers() -> None:
    assert BrokerSettings().name_servers == []
    settings = make_broker_settings({"namesrvAddr": "10.0.0.1:9876; 10.0.0.2:9876;"})
    assert settings.name_servers == ["10.0.0.1:9876", "10.0.0.2:9876"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"listenPort": "70000"}, "listenPort"),
        ({"listenPort": "1"}, "listenPort"),
        (
            {"brokerId": "1"},
            "brokerId: 1 is a slave's; a broker with brokerRole",
        ),
        ({"brokerRole": "SYNC_MASTER", "brokerId": "2"}, "brokerRole SYNC_MASTER has 0"),
        (
            {"brokerRole": "SLAVE"},
            "brokerId: 0 is the master's; give this SLAVE a number of 1 or more",
        ),
        ({"brokerRole": "SLAVE", "brokerId": "-1"}, "brokerId"),
        ({"storePathRootDir": "/a", "storePathCommitLog": "/b"}, "storePathCommitLog"),
        ({"autoCreateTopicEnable": "perhaps"}, "autoCreateTopicEnable"),
        ({"brokerName": ""}, "brokerName"),
        ({"brokerIP1": "localhost"}, "brokerIP1"),
        ({"deleteWhen": "abc"}, "setting deleteWhen: 'abc' is not allowed: use hours of the day"),
        ({"startAcceptSendRequestTimeStamp": str(2**63 - 1)}, "use 0 to 4102444800000"),
        ({"regionId": "r" * 33_000}, "regionId: .* use 1 to 100 bytes"),
        ({"namesrvAddr": "10.0.0.1:9876;10.0.0.2"}, 'namesrvAddr: .* use "host:port"'),
        ({"messageDelayLevel": "999999999999d"}, "messageDelayLevel"),
    ],
)
def test_values_that_cannot_be(given: dict[str, str], words: str) -> None:
    with pytest.raises(StoreError, match=words):
        make_broker_settings(given)


def test_a_commit_log_where_rocketmq_has_it() -> None:
    given = {"storePathRootDir": "/a", "storePathCommitLog": "/a/commitlog"}
    assert make_broker_settings(given).store_path == Path("/a")


def test_the_memory_of_connections_has_a_least_value() -> None:
    with pytest.raises(StoreError, match="maxConnectionMemory: 1000 is not allowed: use 33554432"):
        make_broker_settings({"maxConnectionMemory": 1000})
