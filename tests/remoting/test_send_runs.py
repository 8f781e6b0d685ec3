"""What kernels take for a run of sends is what reading the frames one by one says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mqlake.remoting.codes import ResponseCode
from mqlake.remoting.command import Command, Serialization, response
from mqlake.remoting.frames import encode
from mqlake.remoting.send_runs import SendAnswers
from tests.remoting import runs
from tests.remoting.messages import SEND_FIELDS, frame, json_header
from tests.remoting.runs import KEY, UNUSUAL, USUAL, check, find, mutated, send, usual

PLAIN = SEND_FIELDS | {"i": KEY}


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


def test_answers_are_those_of_the_encoder() -> None:
    dice = random.Random(3)
    common = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    host = "7F00000100002A9F"
    asked = Command(310, serialization=Serialization.ROCKETMQ)
    answers = SendAnswers(response(asked, header=common), host)
    run = find(b"".join(usual(dice, number * 50_000_000 - 5) for number in range(40)))
    rows = run.drafts.rows
    rows["physical_offset"] = [dice.randrange(1 << dice.randrange(1, 63)) for _ in rows]
    rows["queue_offset"] = [dice.randrange(1 << dice.randrange(1, 63)) for _ in rows]
    rows["queue_offset"][:3] = 0, 9, 10
    expected: list[bytes] = []
    data = run.drafts.source.tobytes()
    for row, sent in zip(rows, run.sends, strict=True):
        fields = common | {
            "msgId": f"{host}{row['physical_offset']:016X}",
            "queueId": str(row["queue_id"]),
            "queueOffset": str(row["queue_offset"]),
            "transactionId": data[sent["key_at"] :][: sent["key_length"]].decode(),
        }
        answer = response(asked, ResponseCode.SUCCESS, fields)
        answer.opaque = int(sent["opaque"])
        expected.append(encode(answer))
    for count in (0, 1, 40):
        assert answers.of(run, count) == b"".join(expected[:count])
    assert np.all(rows["regular"] == 1)
