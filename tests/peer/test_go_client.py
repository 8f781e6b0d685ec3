"""The stock Go client (rocketmq-client-go v2) sends, consumes, orders and delays."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from mqlake.admin import topics
from mqlake.admin.admin import Admin
from mqlake.formats.config.topics import Topic
from mqlake.testing import RunningBroker, broker
from tests.peer.go_build import GoMissingError, build

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(600),
]

SOURCE = Path(__file__).parent / "rocketmq_go"
TOPICS = ("GoSend", "GoOrder", "GoDelay")
PATIENCE = 120
"""Seconds."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened in each feature."""
    try:
        program = build(SOURCE)
    except GoMissingError as reason:
        pytest.skip(f"without the Go client: {reason}")
    directory = tmp_path_factory.mktemp("go")
    with broker(directory / "store", brokerName="broker-a") as running:
        make_topics(running)
        command = [str(program), running.name_server, *TOPICS]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={"HOME": str(directory)},
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def make_topics(running: RunningBroker) -> None:
    async def make() -> None:
        async with Admin(running.name_server) as admin:
            for name in TOPICS:
                topic = Topic(topic_name=name, read_queue_nums=4, write_queue_nums=4)
                await topics.update(admin, topic, None, "broker-a")

    asyncio.run(make())


def test_what_is_sent_is_consumed_and_filtered_by_tag(answers: dict[str, Any]) -> None:
    found = answers["send"]
    assert set(found["statuses"]) == {0}
    consumed = {message["body"]: message for message in found["consumed"]}
    words = ("sync", "async", "oneway", "batch")
    assert set(consumed) == {f"{word} {number}" for word in words for number in range(8)}
    for number in range(8):
        message = consumed[f"sync {number}"]
        assert (message["tags"], message["keys"]) == ("TagA", f"key{number}")
        assert message["properties"]["colour"] == "blue"
    assert len({consumed[f"batch {number}"]["queue"] for number in range(8)}) == 1


def test_each_shard_comes_in_order(answers: dict[str, Any]) -> None:
    shards: dict[str, list[int]] = defaultdict(list)
    queues: dict[str, set[int]] = defaultdict(set)
    for message in answers["ordered"]:
        shard, number = message["body"].split()
        shards[shard].append(int(number))
        queues[shard].add(message["queue"])
    assert len(shards) == 6
    assert all(list(dict.fromkeys(numbers)) == list(range(10)) for numbers in shards.values())
    assert all(len(found) == 1 for found in queues.values())


def test_delays(answers: dict[str, Any]) -> None:
    found = answers["delay"]
    came = {message["body"]: message["at"] for message in found["consumed"]}
    waited = {body: came[body] - at for body, at in found["sent"].items()}
    assert waited.keys() == {"level 0", "level 1", "level 2"}
    assert waited["level 1"] >= 1000
    assert waited["level 2"] >= 5000
