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
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.signature import Credentials
from mqlake.testing import RunningBroker, broker
from tests.auth.closed import CLOSED, ROOT
from tests.peer.go_build import GoMissingError, build

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(600),
]

USER = Credentials("gopher", "gopher-password")
AUTHORIZING = {**CLOSED, "authorizationEnabled": "true"}
SOURCE = Path(__file__).parent / "rocketmq_go"
TOPICS = ("GoSend", "GoOrder", "GoDelay")
PATIENCE = 120
"""Seconds."""


@pytest.fixture(scope="module")
def program() -> str:
    """The path of the Go program."""
    try:
        return str(build(SOURCE, quickly=True))
    except GoMissingError as reason:
        pytest.skip(f"without the Go client: {reason}")


@pytest.fixture(scope="module", params=["open", "closed"])
def answers(
    request: pytest.FixtureRequest, program: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What happened in each feature, at an open broker, and at one with users."""
    directory, is_closed = tmp_path_factory.mktemp("go"), request.param == "closed"
    settings = AUTHORIZING if is_closed else {}
    with broker(directory / "store", brokerName="broker-a", **settings) as running:
        make_topics(running, ROOT if is_closed else None)
        done = run(program, running, directory, USER if is_closed else None)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def run(
    program: str, running: RunningBroker, directory: Path, user: Credentials | None
) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(directory)}
    if user is not None:
        environment |= {"ACCESS_KEY": user.access_key, "SECRET_KEY": user.secret_key}
    return subprocess.run(
        [program, running.name_server, *TOPICS],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment,
        check=False,
    )


def make_topics(running: RunningBroker, root: Credentials | None) -> None:
    """Create the topics and, at a closed broker, a user who may use them."""

    async def make() -> None:
        async with Admin(running.name_server, credentials=root) as admin:
            for name in TOPICS:
                topic = Topic(topic_name=name, read_queue_nums=4, write_queue_nums=4)
                await topics.update(admin, topic, None, "broker-a")
            if root is None:
                return
            address = (await admin.brokers())[0].address
            names, subject = {"username": USER.access_key}, f"User:{USER.access_key}"
            body = json.dumps({"password": USER.secret_key}).encode()
            await admin.ask(address, RequestCode.AUTH_CREATE_USER, names, body)
            entries = [
                {"resource": resource, "actions": actions, "decision": "Allow"}
                for resource, actions in (("Topic:Go*", ["Pub", "Sub"]), ("Group:G_Go*", ["Sub"]))
            ]
            policies = [{"policyType": "Custom", "entries": entries}]
            body = json.dumps({"subject": subject, "policies": policies}).encode()
            await admin.ask(address, RequestCode.AUTH_CREATE_ACL, {"subject": subject}, body)

    asyncio.run(make())


def test_a_wrong_key_is_refused(program: str, tmp_path: Path) -> None:
    with broker(tmp_path / "store", brokerName="broker-a", **AUTHORIZING) as running:
        make_topics(running, ROOT)
        done = run(program, running, tmp_path, Credentials(USER.access_key, "wrong-password"))
    assert done.returncode != 0
    assert "check signature failed" in done.stderr


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
