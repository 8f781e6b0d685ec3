"""Priorities of messages that are sent."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mqlake.broker.send.priorities import placed
from mqlake.formats.properties import decode_properties, encode_properties
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.send import SendMessageResponseHeader
from tests import simulated
from tests.broker.admin.asking import done, wanted
from tests.broker.running import running, to
from tests.broker.send.random_sends import KEY, TOPIC, send
from tests.broker.send.streams import ask, warm
from tests.protocol.messages import SEND_FIELDS

PRIORITY = "_SYS_MSG_PRIORITY_"
QUEUES = 4


@pytest.mark.parametrize(
    ("text", "queue_id"),
    [("0", 0), ("2", 2), ("3", 3), ("4", 3), ("2147483647", 3), ("+1", 1), ("0002", 2)],
)
def test_a_priority_is_a_queue(text: str, queue_id: int) -> None:
    properties = encode_properties({"KEYS": "k", PRIORITY: text})
    assert placed(properties, 1, QUEUES) == (properties, queue_id)


@pytest.mark.parametrize("text", ["-1", "", "x", "1.0", " 1", "2147483648", "9" * 5000, "1_0"])
def test_what_is_no_priority_changes_nothing(text: str) -> None:
    properties = f"KEYS\x01k\x02{PRIORITY}\x01{text}\x02".encode()
    assert placed(properties, 1, QUEUES) == (properties, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"DELAY": "0"},
        {"TIMER_DELAY_MS": "1"},
        {"TIMER_DELAY_SEC": "1"},
        {"TIMER_DELIVER_MS": "1"},
        {"__SHARDINGKEY": "k"},
        {"TRAN_MSG": "true"},
        {"TRAN_MSG": "True"},
    ],
)
def test_messages_of_other_types_lose_their_priority(other: dict[str, str]) -> None:
    properties, queue_id = placed(encode_properties({PRIORITY: "3", **other}), 1, QUEUES)
    assert (decode_properties(properties), queue_id) == (other, 1)


def test_a_message_of_no_transaction_keeps_it() -> None:
    properties = encode_properties({PRIORITY: "3", "TRAN_MSG": "false"})
    assert placed(properties, 1, QUEUES) == (properties, 3)


def test_a_name_within_another_text_is_none() -> None:
    properties = encode_properties({"KEYS": PRIORITY, f"X{PRIORITY}": "3"})
    assert placed(properties, 1, QUEUES) == (properties, 1)


def test_a_topic_without_a_queue_to_write_takes_none(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            header = wanted("Orders", write_queue_nums=0)
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)
            answer = await broker.send(to("Orders", properties=f"{PRIORITY}\x010\x02"))
            assert answer.code == ResponseCode.INVALID_PARAMETER

    simulated.run(check())


def test_runs_of_sends_obey_priorities(tmp_path: Path) -> None:
    """Kernels take the sends before and after one with a priority, and not that one."""
    dice = random.Random(7)
    count = 400
    wished = [dice.randrange(QUEUES) if dice.random() < 0.05 else None for _ in range(count)]

    def frame(number: int, priority: int | None) -> bytes:
        wish = "" if priority is None else f"{PRIORITY}\x01{priority}\x02"
        return send(SEND_FIELDS | {"e": "0", "i": wish + KEY}, b"body", number)

    async def check() -> None:
        async with running(tmp_path) as broker:
            await warm(broker)
            stream = b"".join(frame(*each) for each in enumerate(wished))
            answers = await ask(broker, stream, count)
            for number, priority in enumerate(wished):
                found = answers[number].header(SendMessageResponseHeader).queue_id
                assert found == (priority or 0)
            for queue in range(1, QUEUES):
                assert len(broker.records(TOPIC, queue)) >= wished.count(queue) > 0

    simulated.run(check())
