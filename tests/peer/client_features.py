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
    "recallMessageEnable": "true",
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1000,
}


EXAMPLES: tuple[tuple[tuple[object, ...], ...], ...] = (
    (
        (
            "one topic, three kinds of consumers",
            "Receive New Messages",
            3 * 1000,
            "quickstart.Producer",
            "quickstart.Consumer",
            "broadcast.PushConsumer",
            "simple.PopConsumer",
        ),
        (
            "tags",
            "Receive New Messages",
            40,
            "filter.TagFilterProducer",
            "filter.TagFilterConsumer",
        ),
        ("order", "SEND_OK", 100, "ordermessage.Producer"),
    ),
    (
        ("transactions", "SEND_OK", 10, "transaction.TransactionProducer"),
        ("batch", "SEND_OK", 1, "batch.SimpleBatchProducer"),
        ("async", "OK ", 100, "simple.AsyncProducer"),
    ),
)
"""Programs of rocketmq-example, as `Clients.examples` takes them, in the order of their stages.

Those that have the address of their name server in them are left out.
"""


def run_examples(clients: Clients, names: str) -> dict[str, str]:
    """Run the shipped programs; return what each set of them printed."""
    printed: dict[str, str] = {}
    for stage in EXAMPLES:
        printed |= clients.examples(names, stage)
    return printed


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
