"""The real mqadmin prints the same of mqlake's broker as of RocketMQ's."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mqlake.testing import broker
from tests.peer.java_build import JavaMissingError
from tests.peer.mqadmin_matrix import entries, run
from tests.peer.mqadmin_page import DIFFERENT, PAGE, page
from tests.peer.rocketmq_client import Clients
from tests.peer.rocketmq_cluster import Cluster

pytestmark = [pytest.mark.peer]

RECORDED = Path(__file__).parent / "mqadmin" / "rocketmq-5.5.0.json"
"""What is printed of RocketMQ; the nightly test writes it where it is missing."""

SETTINGS: dict[str, object] = {
    "channelExpiredTimeout": 120_000,  # RocketMQ's; `mqlake.testing` has a longer one
    "osPageCacheBusyTimeOutMills": 1000,  # the default of both, which `Cluster` changes
    "brokerName": "broker-a",
    "mappedFileSizeCommitLog": 1 << 24,
    "maxHashSlotNum": 10_000,
    "maxIndexNum": 40_000,
    "enablePropertyFilter": "true",
    "enabledAppendPropCRC": "false",
}


@dataclass
class Side:
    names: str
    broker: str


@contextmanager
def tools(directory: Path) -> Iterator[Clients]:
    directory.mkdir()
    try:
        clients = Clients(directory)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    try:
        yield clients
    finally:
        clients.close()


def different(recorded: Mapping[str, str], printed: Mapping[str, str]) -> set[str]:
    return {
        entry.words
        for entry in entries()
        if not entry.is_same(recorded[entry.words], printed[entry.words])
    }


def shown(recorded: str, printed: str) -> str:
    lines = recorded.splitlines(), printed.splitlines()
    return "\n".join(difflib.unified_diff(*lines, "RocketMQ", "mqlake", n=1, lineterm=""))


@pytest.mark.timeout(600)
def test_mqadmin_prints_the_same_of_mqlake(tmp_path: Path) -> None:
    with (
        tools(tmp_path / "tools") as clients,
        broker(tmp_path / "store", **SETTINGS) as running,
    ):
        printed = run(clients, Side(running.name_server, running.address), tmp_path)
    recorded = json.loads(RECORDED.read_text())
    found = different(recorded, printed)
    unexpected = sorted(found - DIFFERENT.keys())
    assert not unexpected, "\n".join(shown(recorded[each], printed[each]) for each in unexpected)
    assert found == DIFFERENT.keys(), "some that differed are the same now"
    assert len(found) <= 0.1 * len(recorded)
    if PAGE.read_text() != page():
        PAGE.write_text(page())
        pytest.fail("docs/mqadmin.md was out of date; it has been written anew")


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_the_record_is_what_rocketmq_prints(tmp_path: Path) -> None:
    with tools(tmp_path / "tools") as clients:
        (tmp_path / "cluster").mkdir()
        cluster = Cluster(tmp_path / "cluster", tmp_path / "store", SETTINGS)
        cluster.start()
        try:
            printed = run(clients, Side(cluster.names, cluster.broker), tmp_path)
        finally:
            cluster.kill()
    if not RECORDED.exists():
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text(json.dumps(printed, indent=1) + "\n")
    recorded = json.loads(RECORDED.read_text())
    found = sorted(different(recorded, printed))
    assert not found, "\n".join(shown(recorded[each], printed[each]) for each in found)
