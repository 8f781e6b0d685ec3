"""What stock clients are to do, on which topics: `rocketmq_client/Features.java` does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.peer.rocketmq_client import NEWEST, Clients

QUEUES = {
    "send": 4,
    "rebalance": 4,
    "broadcasting": 4,
    "ordered": 4,
    "ordered globally": 1,
    "delay": 4,
    "transactions": 4,
    "retry": 2,
    "request and reply": 4,
    "tags": 1,
    "sql": 1,
    "lite pull": 4,
    "pop": 4,
    "trace": 1,
    "offsets": 1,
}
"""Queues of each feature's topic."""

SETTINGS: Mapping[str, object] = {
    "brokerName": "broker-a",
    "mappedFileSizeCommitLog": 1 << 24,
    "enablePropertyFilter": "true",
    "traceTopicEnable": "true",
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1000,
    "waitTimeMillsInSendQueue": 10_000,
}


def run(clients: Clients, version: str, names: str, broker: str) -> dict[str, dict[str, Any]]:
    """Make the topics with mqadmin, then run all features at a time; return what happened."""
    wanted = [name for name in QUEUES if name != "pop" or version == NEWEST]
    prefix = f"V{version[0]}"
    topics = {name: f"{prefix}_{name.replace(' ', '_')}" for name in wanted}
    # A consumer that starts before its retry topic would look for it half a minute later.
    queues = {topics[name]: QUEUES[name] for name in wanted}
    queues[f"%RETRY%G_{topics['retry']}"] = 1
    at = ("-b", broker)
    commands = [
        ["updateTopic", *at, "-t", topic, "-r", str(count), "-w", str(count)]
        for topic, count in queues.items()
    ]
    _do(clients, names, commands)
    if "pop" in topics:
        group = f"G_{topics['pop']}"
        _do(clients, names, [["updateSubGroup", *at, "-g", group]])
        mode = ["-t", topics["pop"], "-g", group, "-m", "POP", "-q", "0"]
        _do(clients, names, [["setConsumeMode", *at, *mode]])
    return clients.features(names, topics)


def _do(clients: Clients, names: str, commands: list[list[str]]) -> None:
    for printed in clients.mqadmin(names, commands):
        assert "success" in printed, printed
