"""RocketMQ's client for Rust (the crate `rocketmq`) sends messages of each type, and receives them.

To compile its 200 crates takes minutes, so the nightly run does it.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mqlake.broker.broker import Broker
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.testing import broker
from tests.peer.rust_build import RustMissingError, build

pytestmark = [pytest.mark.peer, pytest.mark.nightly, pytest.mark.timeout(3600)]

SOURCE = Path(__file__).parent / "rocketmq_rust"
KINDS = {"Normal": "NORMAL", "Fifo": "FIFO", "Later": "DELAY", "Half": "TRANSACTION"}


@pytest.fixture(scope="module")
def program() -> str:
    """The path of the Rust program."""
    try:
        return str(build(SOURCE))
    except RustMissingError as reason:
        pytest.skip(f"without the Rust client: {reason}")


async def prepare(running: Broker) -> None:
    for name, kind in KINDS.items():
        queues = 1 if kind == "FIFO" else 2
        attributes = {"message.type": kind}
        running.state.topics.put(Topic(name, queues, queues, attributes=attributes))
    running.state.groups.put(SubscriptionGroup("rust"))


def test_the_rust_client_sends_and_receives(tmp_path: Path, program: str) -> None:
    with broker(tmp_path / "store", grpc=True) as running:
        running.call(prepare)
        command = [program, str(running.grpc)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    normal = sorted(found["Normal"], key=lambda each: each["body"])
    assert [each["body"] for each in normal] == ["normal 0", "normal 2", "normal 4"]
    assert {each["tag"] for each in normal} == {"even"}
    assert [each["keys"] for each in normal] == [["key-0"], ["key-2"], ["key-4"]]
    assert [each["properties"]["number"] for each in normal] == ["0", "2", "4"]
    assert all(each["is as sent"] and each["attempt"] == 1 for each in normal)
    assert [each["body"] for each in found["Fifo"]] == [f"fifo {number}" for number in range(4)]
    assert {each["group"] for each in found["Fifo"]} == {"one group"}
    assert [each["body"] for each in found["Later"]] == ["later"]
    assert [each["body"] for each in found["Half"]] == ["committed true"]
