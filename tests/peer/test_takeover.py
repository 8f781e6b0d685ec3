"""The real broker takes over mqlake's store, and mqlake takes it back: clients just go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.testing import broker
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_client import Clients
from tests.peer.rocketmq_cluster import NEWEST_4_BROKER, Cluster
from tests.store.record_crcs import check_crcs

pytestmark = [pytest.mark.peer, pytest.mark.nightly, pytest.mark.timeout(600)]

TOPIC, GROUP = "TakenOver", "G_TakenOver"
SETTINGS: dict[str, object] = {
    "brokerName": "broker-a",
    "mappedFileSizeCommitLog": 1 << 24,
    "mappedFileSizeConsumeQueue": 20_000,
    "maxHashSlotNum": 10_000,
    "maxIndexNum": 40_000,
}


def ten(word: str) -> list[str]:
    return [f"{word} {number}" for number in range(10)]


@pytest.mark.parametrize("version", [None, NEWEST_4_BROKER])
def test_clients_go_on_when_brokers_change(version: str | None, tmp_path: Path) -> None:
    for name in ("clients", "cluster"):
        (tmp_path / name).mkdir()
    store = tmp_path / "store"
    try:
        clients = Clients(tmp_path / "clients")
        cluster = Cluster(tmp_path / "cluster", store, SETTINGS, version=version)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    with broker(store, **SETTINGS) as running:
        names = running.name_server
        make = ["updateTopic", "-b", running.address, "-t", TOPIC, "-r", "4", "-w", "4"]
        assert "success" in clients.mqadmin(names, [make])[0]
        clients.begin(names, TOPIC, "first")
        assert sorted(clients.go_on(names, TOPIC, GROUP, "for the real one")) == ten("first")
    assert check_crcs(store) >= 2 * len(ten(""))
    cluster.start()
    try:
        found = clients.go_on(cluster.names, TOPIC, GROUP, "for mqlake")
        assert sorted(found) == ten("for the real one")
    finally:
        cluster.stop()
    with broker(store, **SETTINGS) as running:
        found = clients.go_on(running.name_server, TOPIC, GROUP, "last")
        assert sorted(found) == ten("for mqlake")
    clients.close()
