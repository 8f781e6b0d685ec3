"""What kernels take for a run of sends is what reading the frames one by one says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mqlake.broker.send.run_frames import Most, Run, SendAnswers, SendRuns
from mqlake.formats import record_crc
from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, Serialization, response
from mqlake.protocol.frames import encode
from tests.broker.send import random_runs as runs
from tests.broker.send.random_runs import (
    BATCH_FIELDS,
    KEY,
    UNUSUAL,
    UNUSUAL_IN_BATCHES,
    USUAL,
    USUAL_IN_BATCHES,
    batch,
    check,
    check_batches,
    find,
    find_batches,
    mutated,
    mutated_batches,
    send,
    usual,
    usual_batch,
)
from tests.protocol.messages import SEND_FIELDS, frame, json_header

PLAIN = SEND_FIELDS | {"i": KEY}
MESSAGES = encode_batch([(0, b"a", b""), (1, b"b", b"KEYS\x01k\x02")])
HOST = "7F00000100002A9F"


def test_all_of_a_run_is_found() -> None:
    dice = random.Random(1)
    for count in (1, 2, 64, 512):
        data = b"".join(usual(dice, number) for number in range(count))
        assert check(data) == count
        assert check(data[:-1]) == count - 1
    assert check(b"".join(usual(dice, number) for number in range(600))) == 512


@pytest.mark.parametrize("name", USUAL)
def test_each_usual_value_is_taken(name: str) -> None:
    for value in USUAL[name]:
        assert check(send(PLAIN | {name: value})) == 1, (name, value)


@pytest.mark.parametrize("name", UNUSUAL)
def test_each_unusual_value_ends_a_run(name: str) -> None:
    for value in UNUSUAL[name]:
        assert check(send(PLAIN) + send(PLAIN | {name: value}) + send(PLAIN)) == 1, (name, value)


@pytest.mark.parametrize(
    "other",
    [
        frame(json_header(extFields=PLAIN), b"body"),
        send(PLAIN, flag=2),
        send(PLAIN, flag=1),
        send(PLAIN, b""),
        send(PLAIN, bytes(runs.MOST.body + 1)),
        send(PLAIN, bytes(runs.MOST.frame)),
        send(PLAIN | {"n": "x" * runs.MOST.header}),
        b"\xff" * 8,
        bytes(8),
    ],
)
def test_what_is_no_usual_send_ends_a_run(other: bytes) -> None:
    assert check(send(PLAIN) + other + send(PLAIN)) == 1
    assert check(other + send(PLAIN)) == 0


@pytest.mark.parametrize("name", "abcdefghi")
def test_a_field_that_must_be_there(name: str) -> None:
    fields = {key: value for key, value in PLAIN.items() if key != name}
    assert check(send(fields)) == 0


def test_mutated_runs_are_what_the_reader_says() -> None:
    dice = random.Random(11)
    taken = sum(check(mutated(dice)) for _ in range(2000))
    assert taken > 5000


def test_all_batches_of_a_run_are_found() -> None:
    dice = random.Random(1)
    for count in (1, 2, 64):
        data = b"".join(usual_batch(dice, number) for number in range(count))
        assert check_batches(data) == count
        assert check_batches(data[:-1]) == count - 1
    one = batch(BATCH_FIELDS, encode_batch([(0, b"a", b"")]))
    assert check_batches(600 * one) == 512
    assert check_batches(30 * batch(BATCH_FIELDS, encode_batch([(0, b"", b"")] * 180))) == 22


@pytest.mark.parametrize("name", USUAL_IN_BATCHES)
def test_each_usual_value_of_batches_is_taken(name: str) -> None:
    for value in USUAL_IN_BATCHES[name]:
        assert check_batches(batch(BATCH_FIELDS | {name: value}, MESSAGES)) == 1, (name, value)


@pytest.mark.parametrize("name", UNUSUAL_IN_BATCHES)
def test_each_unusual_value_of_batches_ends_a_run(name: str) -> None:
    plain = batch(BATCH_FIELDS, MESSAGES)
    for value in UNUSUAL_IN_BATCHES[name]:
        unusual = batch(BATCH_FIELDS | {name: value}, MESSAGES)
        assert check_batches(plain + unusual + plain) == 1, (name, value)


@pytest.mark.parametrize(
    "other",
    [
        send(PLAIN),
        send(BATCH_FIELDS, MESSAGES),
        send(PLAIN, MESSAGES, code=RequestCode.SEND_BATCH_MESSAGE),
        batch(BATCH_FIELDS, b""),
        batch(BATCH_FIELDS, MESSAGES[:-1]),
        batch(BATCH_FIELDS, MESSAGES + b"x"),
        batch(BATCH_FIELDS, encode_batch([(0, b"", b""), (0, b"a", record_crc.encode(7))])),
        batch(BATCH_FIELDS, encode_batch([(0, b"a", b"A\x01#\x02" + record_crc.encode(7)[:-1])])),
    ],
)
def test_what_is_no_usual_batch_ends_a_run(other: bytes) -> None:
    plain = batch(BATCH_FIELDS, MESSAGES)
    assert check_batches(plain + other + plain) == 1


@pytest.mark.parametrize(("length", "count"), [(32746, 3), (32747, 1), (32767, 1)])
def test_messages_of_batches_leave_room_for_a_record_crc(length: int, count: int) -> None:
    """And for the separator before it: whoever appends a run appends all of it."""
    plain = batch(BATCH_FIELDS, MESSAGES)
    long = batch(BATCH_FIELDS, encode_batch([(0, b"", bytes(length)), (0, b"", b"")]))
    name = np.frombuffer(runs.TOPIC.encode(), np.uint8)
    found = SendRuns(Most(1 << 17, 1 << 16, 1 << 17)).find_batches(
        plain + long + plain, 0, name, runs.QUEUES
    )
    assert len(found.sends) == count


@pytest.mark.parametrize(("room", "count"), [(0, 3), (-1, 1)])
def test_messages_leave_room_for_a_record_crc(room: int, count: int) -> None:
    name, own = (np.frombuffer(text.encode(), np.uint8) for text in (runs.TOPIC, runs.OWN))
    most = 32767 - record_crc.SIZE - len(own) - 1
    text = "A\x01".ljust(most - room - len(KEY), "a") + "\x02" + KEY[:-1]
    data = send(PLAIN) + send(PLAIN | {"i": text}) + send(PLAIN)
    sizes = Most(1 << 17, 1 << 16, 1 << 17, 32767 - record_crc.SIZE)
    found = SendRuns(sizes).find(data, 0, name, runs.QUEUES, own)
    assert len(found.sends) == count


def test_mutated_batches_are_what_the_reader_says() -> None:
    dice = random.Random(11)
    taken = sum(check_batches(mutated_batches(dice)) for _ in range(1000))
    assert taken > 2000


def answers_of(run: Run, dice: random.Random) -> tuple[SendAnswers, list[bytes]]:
    """Say where the drafts of a run were put; return what answers it, and what the answers are."""
    common = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    asked = Command(310, serialization=Serialization.ROCKETMQ)
    rows = run.drafts.rows
    rows["physical_offset"] = [dice.randrange(1 << dice.randrange(1, 63)) for _ in rows]
    rows["queue_offset"] = [dice.randrange(1 << dice.randrange(1, 63)) for _ in rows]
    rows["queue_offset"][:3] = 0, 9, 10
    assert np.all(rows["regular"] == 1)
    expected: list[bytes] = []
    data, row = run.drafts.source.tobytes(), 0
    for sent in run.sends:
        offsets = rows["physical_offset"][row : row + sent["messages"]].tolist()
        fields = common | {
            "msgId": ",".join(f"{HOST}{offset:016X}" for offset in offsets),
            "queueId": str(rows["queue_id"][row]),
            "queueOffset": str(rows["queue_offset"][row]),
            "transactionId": data[sent["key_at"] :][: sent["key_length"]].decode(),
        }
        answer = response(asked, ResponseCode.SUCCESS, fields)
        answer.opaque = int(sent["opaque"])
        expected.append(encode(answer))
        row += sent["messages"]
    return SendAnswers(response(asked, header=common), HOST), expected


def test_answers_are_those_of_the_encoder() -> None:
    dice = random.Random(3)
    stream = b"".join(usual(dice, number * 50_000_000 - 5) for number in range(40))
    answers, expected = answers_of(run := find(stream), dice)
    for count in (0, 1, 40):
        assert answers.of(run, count) == b"".join(expected[:count])


def test_answers_to_batches_are_those_of_the_encoder() -> None:
    dice = random.Random(3)
    stream = b"".join(usual_batch(dice, number * 50_000_000 - 5) for number in range(40))
    answers, expected = answers_of(run := find_batches(stream), dice)
    for count in (0, 1, 40):
        assert answers.of(run, count) == b"".join(expected[:count])
