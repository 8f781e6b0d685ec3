"""What a replica needs to know of its master, and which masters it refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mqlake.client.cluster import Cluster
from mqlake.errors import MqlakeError
from mqlake.replica.master import FoundMaster, UnusableMasterError, find_master
from mqlake.replica.options import ReplicaOptions
from tests.remoting.serving import serving

SETTINGS = {
    "brokerName": "broker-a",
    "brokerRole": "ASYNC_MASTER",
    "brokerIP2": "10.0.0.7",
    "haListenPort": "10912",
    "mapedFileSizeCommitLog": "1048576",
}


def found(master: str = "broker-a", names: str = "n:1", **settings: str) -> FoundMaster:
    text = "".join(f"{name}={value}\n" for name, value in (SETTINGS | settings).items())

    async def broker(_: str) -> SimpleNamespace:
        return SimpleNamespace(address="10.0.0.1:10911")

    async def ask(*_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(body=text.encode())

    cluster: Any = SimpleNamespace(name_servers=[names] if names else [], broker=broker, ask=ask)
    options = ReplicaOptions(master=master, store=Path("store"), name_servers=names)
    return asyncio.run(find_master(cluster, options))


def test_a_master_tells_where_slaves_connect() -> None:
    assert found().ha_address == "10.0.0.7:10912"
    assert found().files == {"mappedFileSizeCommitLog": 1 << 20}
    assert found(brokerIP2="").ha_address == "10.0.0.1:10912"
    assert found(brokerIP2="fe80::1").ha_address == "[fe80::1]:10912"
    # As mqlake's broker has it: the port after its own.
    assert found(haListenPort="0").ha_address == "10.0.0.7:10912"


def test_how_long_its_puts_wait() -> None:
    assert found().ack_wait == 0
    assert found(brokerRole="SYNC_MASTER").ack_wait == 3
    assert found(brokerRole="SYNC_MASTER", slaveTimeout="500").ack_wait == 0.5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"brokerRole": "SLAVE"}, "is a slave: name its master"),
        ({"enableControllerMode": "true"}, "controller mode"),
        ({"names": ""}, "name a name server"),
    ],
)
def test_masters_that_are_of_no_use(settings: dict[str, str], words: str) -> None:
    with pytest.raises(UnusableMasterError, match=words):
        found(**settings)


def test_a_server_that_is_no_broker() -> None:
    async def run() -> None:
        async with serving({}) as served, Cluster(served.address) as cluster:
            await find_master(cluster, ReplicaOptions(master=served.address, store=Path("store")))

    with pytest.raises(UnusableMasterError, match=r" is not a broker: give a master's address, or"):
        asyncio.run(run())


@pytest.mark.parametrize(
    "settings",
    [
        {"brokerName": "broker-b"},
        {"brokerName": ""},
        {"haListenPort": "x"},
        {"haListenPort": "70000"},
        {"haListenPort": "9" * 5000},
        {"mapedFileSizeCommitLog": "-1"},
        {"slaveTimeout": "soon", "brokerRole": "SYNC_MASTER"},
    ],
)
def test_odd_settings(settings: dict[str, str]) -> None:
    with pytest.raises(MqlakeError):
        found(**settings)
