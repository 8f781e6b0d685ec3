"""RocketMQ's gRPC clients do all they can behind a proxy in cluster mode.

RocketMQ's proxy before mqlake's broker, mqlake's proxy before RocketMQ's broker, and mqlake's
before mqlake's. The nightly run does the same with RocketMQ's on both places: it shows that the
features ask for the right things.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mqlake.admin.admin import Admin
from mqlake.protocol.codes import RequestCode
from mqlake.testing import broker
from tests.peer.client_features import SETTINGS
from tests.peer.grpc_clients import COMMANDS, ClientsMissingError, Features, run, topic_of
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_cluster import Cluster

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(600),
]

Side = tuple[str, str]
"""The proxy, and the broker behind it."""
USUAL: tuple[Side, ...] = (("rocketmq", "mqlake"), ("mqlake", "rocketmq"))
SIDES = [
    pytest.param(USUAL[0], id="mqlake"),
    pytest.param(USUAL[1], id="rocketmq behind mqlake's proxy"),
    pytest.param(
        ("mqlake", "mqlake"), id="mqlake behind mqlake's proxy", marks=pytest.mark.nightly
    ),
    pytest.param(("rocketmq", "rocketmq"), id="rocketmq", marks=pytest.mark.nightly),
]
TIMER_PRECISION = 1000
"""Milliseconds by which RocketMQ's timers may be early."""
PROXY_WORDS = 9
"""Of a receipt: the proxy appends the physical offset to the eight of the broker."""


@dataclass(frozen=True)
class Happened:
    """What the clients of each language saw, and the groups that the broker has then."""

    by_language: dict[str, Features | ClientsMissingError]
    groups: str


@pytest.fixture(scope="module")
def of_usual(tmp_path_factory: pytest.TempPathFactory) -> dict[Side, Happened]:
    """What happened on the sides of each run, at the same time: clients mostly wait."""
    places = [tmp_path_factory.mktemp("grpc") for _ in USUAL]
    with ThreadPoolExecutor(len(USUAL)) as threads:
        return dict(zip(USUAL, threads.map(happened_on, USUAL, places), strict=True))


@pytest.fixture(scope="module", params=SIDES)
def happened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Happened:
    try:
        if request.param in USUAL:
            return request.getfixturevalue("of_usual")[request.param]
        return happened_on(request.param, tmp_path_factory.mktemp("grpc"))
    except JavaMissingError as reason:
        pytest.skip(f"without RocketMQ: {reason}")


def happened_on(side: Side, directory: Path) -> Happened:
    proxy, behind = side
    is_mqlake = proxy == "mqlake"
    if behind == "mqlake":
        with broker(directory / "store", **SETTINGS) as running:
            return run_on(running.name_server, running.address, directory, is_mqlake=is_mqlake)
    cluster = Cluster(directory, directory / "store", SETTINGS)
    cluster.start()
    try:
        return run_on(cluster.names, cluster.broker, directory, is_mqlake=is_mqlake)
    finally:
        cluster.kill()


def run_on(names: str, address: str, directory: Path, *, is_mqlake: bool) -> Happened:
    found = run(names, directory, is_mqlake=is_mqlake)
    return Happened(found, asyncio.run(groups_of(names, address)))


async def groups_of(names: str, address: str) -> str:
    async with Admin(names) as admin:
        answer = await admin.ask(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    return answer.body.decode()


@pytest.fixture(params=COMMANDS)
def language(request: pytest.FixtureRequest) -> str:
    return request.param


def feature(happened: Happened, language: str, name: str) -> dict[str, Any]:
    features = happened.by_language[language]
    if isinstance(features, ClientsMissingError):
        pytest.skip(f"without the gRPC client for {language}: {features}")
    found = features[name]
    assert "failure" not in found, found["failure"]
    return found


def test_what_is_sent_is_consumed_by_tag_and_again_after_a_failure(
    happened: Happened, language: str
) -> None:
    found = feature(happened, language, "send")
    sent = found["sent"]
    assert len(set(sent.values())) == len(sent) == 19
    consumed = {(each["body"], each["attempt"]): each for each in found["consumed"]}
    wanted = {(body, 1) for body in sent if body != "another tag"} | {("retry", 2)}
    assert set(consumed) == wanted
    assert len(found["consumed"]) == len(wanted), "nothing comes twice"
    for (body, _), message in consumed.items():
        assert message["id"] == sent[body]
        assert message["tag"] == ("TagB" if body.startswith("async") else "TagA")
        assert message["properties"]["colour"] == "blue"
    for number in range(8):
        assert consumed[f"sync {number}", 1]["keys"] == [f"key{number}"]


def test_messages_are_acknowledged_hidden_and_delivered_again(
    happened: Happened, language: str
) -> None:
    found = feature(happened, language, "simple")
    assert {(each["body"], each["attempt"]) for each in found["first"]} == {
        (str(number), 1) for number in range(5)
    }
    assert [(each["body"], each["attempt"]) for each in found["again"]] == [("2", 2), ("4", 2)]
    assert not found["left"]


def test_delivery_times(happened: Happened, language: str) -> None:
    found = feature(happened, language, "delay")
    came = {each["body"]: each["at"] for each in found["consumed"]}
    assert came.keys() == found["due"].keys()
    for body, due in found["due"].items():
        assert came[body] >= due - TIMER_PRECISION


def test_each_message_group_comes_in_order(happened: Happened, language: str) -> None:
    by_group: dict[str, list[str]] = defaultdict(list)
    for message in feature(happened, language, "fifo")["consumed"]:
        by_group[message["group"]].append(message["body"])
    assert by_group == {
        group: [f"{group} {number}" for number in range(6)] for group in ("one", "two", "three")
    }


def test_transactions_end_at_once_or_when_the_broker_asks(
    happened: Happened, language: str
) -> None:
    found = feature(happened, language, "transaction")
    assert set(found["asked"]) == {
        f"late {ending} {number}" for ending in ("commit", "rollback") for number in range(2)
    }
    # RocketMQ asks again before it has noted an answer; then a message may come twice.
    assert {each["body"] for each in found["consumed"]} == {
        f"{ending} {number}" for ending in ("commit", "late commit") for number in range(2)
    }


def test_receipts_have_the_words_of_the_proxy(happened: Happened) -> None:
    """Java's client does not show receipts."""
    for language in ("python", "node"):
        received = feature(happened, language, "simple")
        words = {each["words"] for each in received["first"] + received["again"]}
        assert words == {PROXY_WORDS}


def test_groups_are_created_when_a_client_asks_for_them(happened: Happened, language: str) -> None:
    feature(happened, language, "send")
    for name in ("send", "simple", "delay", "transaction"):
        assert f'"G_{topic_of(language, name)}"' in happened.groups
