"""Runs of sends and of batches: random ones, and what reading frame by frame says of them."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from mqlake.broker.send.run_frames import Most, Run, SendRuns
from mqlake.dispatch.drafts import Rows
from mqlake.formats import record_crc
from mqlake.formats.message_batch import decode_batch, encode_batch
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.remoting.frame_reader import FrameReader
from mqlake.remoting.limits import Limits
from tests.hostile.mutate import change
from tests.protocol.messages import SEND_FIELDS, frame, pair

TOPIC, QUEUES, OWN = "TopicTest", 4, "MSG_REGION\x01r\x02"
MOST = Most(1 << 16, 1 << 15, 1 << 12)
KEY = "UNIQ_KEY\x01AB12\x02"
_KEY_START = "UNIQ_KEY\x01"

# What is stored as it is.
USUAL = {
    "a": ("group", "", "größer"),
    "c": ("TBW102", ""),
    "d": ("4", "-1", "0"),
    "e": ("0", "1", "2", "3"),
    "f": ("0", "1", "256", "-2147483648"),
    "g": ("1700000000000", "0", "-5"),
    "h": ("0", "-1", "2147483647"),
    "i": (
        KEY, KEY[:-1], f"KEYS\x01k\x02{KEY}", f"{KEY}TAGS\x01t\x02", f"A\x01\x02{KEY}WAIT\x01true",
    ),
    "j": ("0", "3", "-7"),
    "k": ("true", "false"),
    "m": ("false",),
    "n": ("broker-a", ""),
}  # fmt: skip
# What must be looked at one by one.
UNUSUAL = {
    "b": ("TopicTes", "topicTest", "%RETRY%group", ""),
    "d": ("", "x", "2147483648", "1e3"),
    "e": ("4", "-1", "", "00", "2147483648", "9" * 30),
    "f": ("4", "8", "12", "128", "x", "-2147483649"),
    "g": ("", "-", "1.5", "9" * 19),
    "h": ("2147483648", "+1", " 1"),
    "i": (
        "", "KEYS\x01k\x02", "UNIQ_KEY\x01\x02", f"{KEY}DELAY\x0118\x02",
        f"TIMER_DELAY_MS\x013600000\x02{KEY}",  # none is due while the test runs
        f"{KEY}TRAN_MSG\x01true\x02", f"{KEY}POP_CK\x01x\x02", f"{KEY}INNER_NUM\x011\x02",
        f"{KEY}_SYS_MSG_PRIORITY_\x011\x02", f"{KEY}__LITE_TOPIC\x011\x02",
        f"{KEY}__CRC32#\x010000000000\x02", f"__CRC32#\x01\x02{KEY}",
        f"KEYS\x01ü\x02{KEY}", "UNIQ_KEY\x01A-B\x02", f"{KEY}UNIQ_KEY\x01A B\x02",
        f"KEYS\x01{'k' * 32_767}\x02{KEY}", "UNIQ_KEY",
    ),
    "j": ("", "x"),
    "k": ("yes", ""),
    "l": ("x", ""),
    "m": ("true", "", "False"),
    "zz": ("x",),
}  # fmt: skip

BATCH_FIELDS = SEND_FIELDS | {"i": KEY, "m": "true"}
USUAL_IN_BATCHES = USUAL | {"m": ("true",)}
UNUSUAL_IN_BATCHES = UNUSUAL | {"m": ("false", "", "True")}


def send(
    fields: dict[str, str],
    body: bytes = b"body",
    opaque: int = 7,
    flag: int = 0,
    code: int = RequestCode.SEND_MESSAGE_V2,
) -> bytes:
    """Return the frame of a send with a binary header."""
    pairs = b"".join(pair(name.encode(), value.encode()) for name, value in fields.items())
    start = struct.pack(">hBhiiii", code, 0, 513, opaque, flag, 0, len(pairs))
    return frame(start + pairs, body, 1)


def usual(dice: random.Random, opaque: int) -> bytes:
    """Return a send that belongs into a run."""
    fields = random_fields(dice, USUAL)
    if dice.random() < 0.1:
        fields.pop("m", None)
    return send(fields, dice.randbytes(dice.choice((1, 4, 200))), opaque)


def random_fields(dice: random.Random, usual: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the fields of a send with any of these values."""
    fields = SEND_FIELDS | {name: dice.choice(values) for name, values in usual.items()}
    if dice.random() < 0.1:
        fields["l"] = "16"
    if dice.random() < 0.1:
        del fields[dice.choice("jkn")]
    if dice.random() < 0.1:
        fields = dict(dice.sample(sorted(fields.items()), len(fields)))
    return fields


def body_of_batch(dice: random.Random) -> bytes:
    """Return the messages of a batch."""
    texts = (b"", KEY.encode(), b"KEYS\x01k\x02TAGS\x01t", b"A\x01\0", b"#__CRC32#")
    return encode_batch(
        (dice.randrange(-3, 3), dice.randbytes(dice.choice((0, 1, 90))), dice.choice(texts))
        for _ in range(dice.choice((1, 2, 32)))
    )


def batch(fields: dict[str, str], body: bytes, opaque: int = 7) -> bytes:
    """Return the frame of a batch."""
    return send(fields, body, opaque, code=RequestCode.SEND_BATCH_MESSAGE)


def usual_batch(dice: random.Random, opaque: int) -> bytes:
    """Return a batch that belongs into a run."""
    return batch(random_fields(dice, USUAL_IN_BATCHES), body_of_batch(dice), opaque)


def mutated_batches(dice: random.Random) -> bytes:
    """Return batches, some with hostile values, some bytes of them changed."""
    name = dice.choice(list(UNUSUAL_IN_BATCHES))
    unusual = BATCH_FIELDS | {name: dice.choice(UNUSUAL_IN_BATCHES[name])}
    return _mutated(dice, usual_batch, batch(unusual, body_of_batch(dice)))


def mutated(dice: random.Random) -> bytes:
    """Return sends, some with hostile values, some bytes of them changed."""
    name = dice.choice(list(UNUSUAL))
    unusual = send(SEND_FIELDS | {"i": KEY, name: dice.choice(UNUSUAL[name])}, b"x")
    return _mutated(dice, usual, unusual)


def _mutated(
    dice: random.Random, usual: Callable[[random.Random, int], bytes], unusual: bytes
) -> bytes:
    frames: list[bytes] = []
    for number in range(dice.randrange(1, 20)):
        data = unusual if dice.random() < 0.1 else usual(dice, number - 5)
        if dice.random() < 0.1:
            changed = bytearray(data)
            change(dice, changed, (), b"", len(changed))
            data = bytes(changed)
        frames.append(data)
    stream = b"".join(frames)
    return stream[: dice.randrange(len(stream) + 1)] if dice.random() < 0.2 else stream


@functools.cache
def _runs() -> SendRuns:
    return SendRuns(MOST)


def find(data: bytes, at: int = 0) -> Run:
    """Return the run at a position."""
    name, own = (np.frombuffer(text.encode(), np.uint8) for text in (TOPIC, OWN))
    return _runs().find(data, at, name, QUEUES, own)


def find_batches(data: bytes, at: int = 0) -> Run:
    """Return the run of batches at a position."""
    name = np.frombuffer(TOPIC.encode(), np.uint8)
    return _runs().find_batches(data, at, name, QUEUES)


def check(data: bytes) -> int:
    """See that a run is what reading its frames one by one says; return how many it has."""
    run = find(data)
    drafts, texts = run.drafts.rows, run.drafts.texts.tobytes()
    assert len(drafts) == len(run.sends)
    for command, header, number in _sends(data, run, RequestCode.SEND_MESSAGE_V2):
        draft, sent = drafts[number], run.sends[number]
        assert not header.batch
        _check_shared(run, drafts[number : number + 1], header)
        assert (draft["flag"], sent["messages"]) == (header.flag, 1)
        body_at, body_length = int(draft["body_at"]), int(draft["body_length"])
        assert data[body_at : body_at + body_length] == command.body
        text_at, text_length = int(draft["properties_at"]), int(draft["properties_length"])
        given = _ended(header.properties)
        assert texts[text_at : text_at + text_length] == (given + OWN).encode()
    return len(drafts)


def check_batches(data: bytes) -> int:
    """See that a run is what reading its batches one by one says; return how many it has."""
    run, row = find_batches(data), 0
    for command, header, number in _sends(data, run, RequestCode.SEND_BATCH_MESSAGE):
        assert header.batch
        body = bytes(command.body)
        parts = list(decode_batch(body))
        assert run.sends["messages"][number] == len(parts) > 0
        for part in parts:
            own = body[part.properties_at : part.properties_at + part.properties_length]
            assert record_crc.drop(own) == own
        drafts = run.drafts.rows[row : row + len(parts)]
        _check_shared(run, drafts, header)
        for draft, part in zip(drafts, parts, strict=True):
            assert draft["flag"] == part.flag
            for what, source in (("body", data), ("properties", run.drafts.texts.tobytes())):
                at, length = int(draft[f"{what}_at"]), int(draft[f"{what}_length"])
                start = getattr(part, f"{what}_at")
                assert length == getattr(part, f"{what}_length")
                assert source[at : at + length] == body[start : start + length]
        row += len(parts)
    assert row == len(run.drafts.rows)
    return len(run.sends)


def _sends(data: bytes, run: Run, code: int) -> Iterator[tuple[Command, SendMessageHeaderV2, int]]:
    commands = list(FrameReader(Limits(MOST.frame, MOST.header)).feed(data[: run.end]))
    assert len(commands) == len(run.sends)
    at = 0
    for number, (command, sent) in enumerate(zip(commands, run.sends, strict=True)):
        header = command.header(SendMessageHeaderV2)
        assert (command.code, command.flag, command.remark) == (code, 0, None)
        assert header.topic == TOPIC
        assert (sent["opaque"], sent["frame_at"]) == (command.opaque, at)
        key_at, key_length = int(sent["key_at"]), int(sent["key_length"])
        key, given = data[key_at : key_at + key_length].decode(), _ended(header.properties)
        start = given.rfind(f"\x02{_KEY_START}") + 1
        assert given[start:].startswith(f"{_KEY_START}{key}\x02")
        assert key.isalnum()
        yield command, header, number
        at += 4 + int.from_bytes(data[at : at + 4])
    assert at == run.end


def _check_shared(run: Run, drafts: Rows, header: SendMessageHeaderV2) -> None:
    for draft in drafts:
        assert run.queue_ids[draft["queue"]] == draft["queue_id"] == header.queue_id < QUEUES
        assert draft["sys_flag"] == header.sys_flag
        assert draft["born_timestamp"] == header.born_timestamp
        assert draft["reconsume_times"] == (header.reconsume_times or 0)
        assert (draft["regular"], draft["host"], draft["prepared_transaction_offset"]) == (1, 0, 0)


def _ended(properties: str | None) -> str:
    text = properties or ""
    return text if text.endswith("\x02") else f"{text}\x02"
