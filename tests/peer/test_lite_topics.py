"""RocketMQ's own tools and clients use mqlake's lite topics."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mqlake.broker.broker import Broker
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.testing import broker
from tests.peer.java_build import JavaMissingError
from tests.peer.python_build import PythonMissingError, environment
from tests.peer.rocketmq_client import Clients

pytestmark = [pytest.mark.peer]


def test_mqadmin_manages_lite_topics(tmp_path: Path) -> None:
    directory = tmp_path / "tools"
    directory.mkdir()
    try:
        clients = Clients(directory)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    try:
        with broker(enableLmq="true", brokerName="broker-a") as running:

            def ask(words: str) -> str:
                return clients.mqadmin(running.name_server, [words.split()])[0]

            address = running.address
            ask(f"updateTopic -b {address} -t Sessions -a +message.type=LITE")
            ask(f"updateSubGroup -b {address} -g agents --attributes +lite.bind.topic=Sessions")
            assert '"Sessions":["agents"]' in ask(f"getBrokerLiteInfo -b {address} -d")
            assert "[agents]" in ask("getParentTopicInfo -p Sessions")
            for words in (
                "getLiteTopicInfo -p Sessions -l a -s",
                "getLiteClientInfo -p Sessions -g agents -c c1 -s",
                "getLiteGroupInfo -p Sessions -g agents",
                "getLiteGroupInfo -p Sessions -g agents -l a",
            ):
                answer = ask(words)
                assert "error" not in answer, (words, answer)
                assert "Exception" not in answer, (words, answer)
            assert "dispatched" in ask("triggerLiteDispatch -p Sessions -g agents")
    finally:
        clients.close()


def test_the_official_python_client_consumes_lite_topics(tmp_path: Path) -> None:
    source = Path(__file__).parent / "rocketmq_grpc_python"
    try:
        python = environment(source)
    except PythonMissingError as reason:
        pytest.skip(str(reason))

    async def prepare(running: Broker) -> None:
        state = running.state
        state.topics.put(Topic("Sessions", attributes={"message.type": "LITE"}))
        bound = {"lite.bind.topic": "Sessions"}
        state.groups.put(SubscriptionGroup("agents", attributes=bound))

    with broker(tmp_path / "store", grpc=True, enableLmq="true") as running:
        running.call(prepare)
        command = [str(python), str(source / "lite.py"), str(running.grpc)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found["pushed"]) == {"a0", "a1", "a2", "b0", "b1", "b2"}
    assert list(dict.fromkeys(found["received"])) == ["c0", "c1", "c2"]
