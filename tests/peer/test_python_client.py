"""mqlake's producers and consumers with the real brokers, the newest one and that of 4.9."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.behaviour.cases import CASES, POP_CASES, Case, run
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_cluster import NEWEST_4_BROKER, Cluster

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("python-client")]


@pytest.fixture(scope="module", params=["5.5.0", NEWEST_4_BROKER])
def names(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    place = tmp_path_factory.mktemp("cluster")
    version = None if request.param == "5.5.0" else request.param
    settings = {
        "mappedFileSizeCommitLog": 1 << 25,
        "maxIndexNum": 100_000,
        "maxHashSlotNum": 25_000,
    }
    try:
        cluster = Cluster(place, place / "store", settings, version=version)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    cluster.start()
    yield cluster.names
    cluster.kill()


@pytest.fixture(autouse=True)
def _offsets_in_a_new_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("case", [*CASES, *POP_CASES], ids=lambda case: case.__name__)
def test_behaviour(case: Case, names: str, request: pytest.FixtureRequest) -> None:
    if case in POP_CASES and NEWEST_4_BROKER in request.node.name:
        pytest.skip("brokers of 4.9 do not pop for clients like this one")
    asyncio.run(run(case, names))
