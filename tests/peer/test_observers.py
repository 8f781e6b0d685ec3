"""rocketmq-exporter and RocketMQ Dashboard see of mqlake's broker what they see of RocketMQ's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mqlake.testing import broker
from tests.peer.java_build import JavaMissingError
from tests.peer.observers import Seen, observe
from tests.peer.rocketmq_cluster import Cluster

pytestmark = [
    pytest.mark.peer,
    pytest.mark.nightly,
    pytest.mark.timeout(600),
]

RECORDED = Path(__file__).parent / "observers" / "rocketmq-5.5.0.json"
"""What is seen of RocketMQ; the nightly test writes it if it is missing."""

LEAST_SETTINGS = 80
"""That both sides have."""

SETTINGS: Mapping[str, object] = {
    "channelExpiredTimeout": 120_000,  # RocketMQ's; `mqlake.testing` has a longer one
    "osPageCacheBusyTimeOutMills": 1000,  # the default of both, which `Cluster` changes
    "brokerName": "broker-a",
    "mappedFileSizeCommitLog": 1 << 24,
    "maxHashSlotNum": 10_000,
    "maxIndexNum": 40_000,
    "enablePropertyFilter": "false",
    "enabledAppendPropCRC": "false",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    directory = tmp_path_factory.mktemp("observers")
    try:
        with broker(directory / "store", **SETTINGS) as running:
            return observe(
                running.name_server, running.address, directory / "clients", running.advance
            )
    except JavaMissingError as reason:
        pytest.skip(f"without RocketMQ's admin client: {reason}")


@pytest.mark.parametrize("observer", ["exporter", "dashboard"])
def test_an_observer_sees_the_same_of_mqlake(observer: str, seen: dict[str, Seen]) -> None:
    recorded = json.loads(RECORDED.read_text())[observer]
    found = list(differences(recorded, seen[observer]))
    assert not found, "\n".join(found)


def test_the_record_is_what_is_seen_of_rocketmq(tmp_path: Path) -> None:
    try:
        cluster = Cluster(tmp_path, tmp_path / "store", SETTINGS)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    cluster.start()
    try:
        seen = observe(cluster.names, cluster.broker, tmp_path / "clients", time.sleep)
    finally:
        cluster.kill()
    if not RECORDED.exists():
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n")
    recorded = json.loads(RECORDED.read_text())
    for observer in recorded:
        found = list(differences(recorded[observer], seen[observer]))
        assert not found, "\n".join(found)


def differences(recorded: Seen, seen: Seen) -> Iterator[str]:
    """Yield a line for each value that is not the same, or that only one side has.

    Of the broker's settings, those are compared that both sides have.
    """
    for name in sorted(recorded.keys() | seen.keys()):
        theirs, ours = recorded.get(name, {}), seen.get(name, {})
        both = theirs.keys() & ours.keys()
        labels = both if name == "cluster config" else theirs.keys() | ours.keys()
        assert len(both) > LEAST_SETTINGS or name != "cluster config"
        for label in sorted(labels):
            left, right = theirs.get(label), ours.get(label)
            if left != right:
                yield f"{name} {label}: {left} of RocketMQ, {right} of mqlake"
