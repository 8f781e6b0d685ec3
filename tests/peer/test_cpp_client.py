"""rocketmq-client-cpp, whose requests look different from all others, with mqlake's broker.

It sends enums as ordinals and long integers as text. The nightly run does the same with the real
broker.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from mqlake.admin import groups, topics
from mqlake.admin.admin import Admin
from mqlake.formats.config.topics import Topic
from mqlake.testing import broker
from tests.peer.client_features import SETTINGS
from tests.peer.java_build import JavaMissingError
from tests.peer.python_build import PythonMissingError, environment
from tests.peer.rocketmq_cluster import Cluster
from tests.until import PATIENCE

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(600),
]

SOURCE = Path(__file__).parent / "rocketmq_cpp_python"
QUEUES = {"CppPlain": 4, "CppOrdered": 4, "CppDelayed": 1, "%RETRY%G_CppDelayed": 1}
TOPICS = ("CppPlain", "CppOrdered", "CppDelayed")
WORDS = {"mqlake": ("sync", "oneway", "batch"), "rocketmq": ("sync", "oneway")}
"""What plain messages begin with that come, eight for each word.

The client says "1" where others say "true" of a batch, which RocketMQ's broker does not understand:
it stores the whole batch as one message.
"""
SIDES = [
    pytest.param("mqlake"),
    pytest.param("rocketmq", marks=pytest.mark.nightly),
]


@pytest.fixture(scope="module", params=SIDES)
def happened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("cpp")
    try:
        if request.param == "mqlake":
            with broker(directory / "store", **SETTINGS) as running:
                return run(request.param, running.name_server, directory)
        cluster = Cluster(directory, directory / "store", SETTINGS)
        cluster.start()
        try:
            return run(request.param, cluster.names, directory)
        finally:
            cluster.kill()
    except (JavaMissingError, PythonMissingError) as reason:
        pytest.skip(f"without the C++ client: {reason}")


def run(side: str, names: str, directory: Path) -> dict[str, Any]:
    python = environment(SOURCE)
    asyncio.run(prepare(names))
    with (directory / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [str(python), str(SOURCE / "main.py"), names, *TOPICS, str(8 * len(WORDS[side]))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "HOME": str(directory)},
            cwd=directory,
        )
    assert process.stdout is not None
    try:
        answer = process.stdout.readline()
        assert answer, (directory / "stderr").read_text()[-2000:]
        committed = asyncio.run(all_committed(names))
    finally:
        process.kill()
        process.communicate()
    return {"side": side, **json.loads(answer), "offsets": committed}


async def prepare(names: str) -> None:
    async with Admin(names) as admin:
        for name, count in QUEUES.items():
            topic = Topic(topic_name=name, read_queue_nums=count, write_queue_nums=count)
            await topics.update(admin, topic, None, "broker-a")


async def offsets(names: str) -> dict[str, list[int]]:
    """Return the offsets that each group has committed, and the ends of its queues."""
    found: dict[str, list[int]] = {}
    async with Admin(names) as admin:
        for topic in TOPICS:
            progress = await groups.progress(admin, f"G_{topic}", topic)
            found[topic] = [
                sum(each.consumer_offset for each in progress),
                sum(each.broker_offset for each in progress),
            ]
    return found


async def all_committed(names: str) -> dict[str, list[int]]:
    """Return the offsets once they are those of the ends: the client commits by a timer."""
    end = time.monotonic() + PATIENCE
    while True:
        found = await offsets(names)
        if all(consumed == ends for consumed, ends in found.values()) or time.monotonic() > end:
            return found
        await asyncio.sleep(0.1)


def test_what_is_sent_is_consumed_by_tag(happened: dict[str, Any]) -> None:
    assert set(happened["statuses"]) == {0}
    consumed = {each["body"]: each for each in happened["plain"]}
    words = WORDS[happened["side"]]
    assert consumed.keys() == {f"{word} {number}" for word in words for number in range(8)}
    assert len(happened["plain"]) == len(consumed), "nothing comes twice"
    for body, message in consumed.items():
        tags = "TagB" if body.startswith("oneway") else "TagA"
        assert (message["tags"], message["keys"]) == (tags, f"key of {body}")
        assert message["colour"] == "blue"


def test_each_shard_comes_in_order_and_can_be_pulled(happened: dict[str, Any]) -> None:
    for way in ("ordered", "pulled"):
        shards: dict[str, list[str]] = defaultdict(list)
        for message in happened[way]:
            shard, number = message["body"].split()
            shards[shard].append(number)
        assert shards == {str(shard): list("012345") for shard in range(3)}


def test_a_delayed_message_comes_again_after_a_failure(happened: dict[str, Any]) -> None:
    first, again = happened["delayed"]
    assert (first["body"], first["times"]) == ("retry", 0)
    assert first["at"] >= happened["sent"] + 1000
    assert (again["body"], again["times"]) == ("retry", 1)


def test_groups_commit_their_offsets(happened: dict[str, Any]) -> None:
    for topic, (consumed, end) in happened["offsets"].items():
        assert consumed == end > 0, topic
