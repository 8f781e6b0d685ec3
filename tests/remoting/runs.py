"""Runs of sends: random ones, and what reading frame by frame says of them."""

from __future__ import annotations

import functools
import random
import struct

import numpy as np

from mqlake.remoting.codes import RequestCode
from mqlake.remoting.frames import FrameReader
from mqlake.remoting.headers.send import SendMessageHeaderV2
from mqlake.remoting.limits import Limits
from mqlake.remoting.send_runs import Most, Run, SendRuns
from tests.hostile.mutate import change
from tests.remoting.messages import SEND_FIELDS, frame, pair

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
        "", "KEYS\x01k\x02", "UNIQ_KEY\x01\x02", f"{KEY}DELAY\x013\x02",
        f"TIMER_DELAY_MS\x011\x02{KEY}",
        f"{KEY}TRAN_MSG\x01true\x02", f"{KEY}POP_CK\x01x\x02", f"{KEY}INNER_NUM\x011\x02",
        f"KEYS\x01ü\x02{KEY}", "UNIQ_KEY\x01A-B\x02", f"{KEY}UNIQ_KEY\x01A B\x02",
        f"KEYS\x01{'k' * 32_767}\x02{KEY}", "UNIQ_KEY",
    ),
    "j": ("", "x"),
    "k": ("yes", ""),
    "l": ("x", ""),
    "m": ("true", "", "False"),
    "zz": ("x",),
}  # fmt: skip


def send(fields: dict[str, str], body: bytes = b"body", opaque: int = 7, flag: int = 0) -> bytes:
    """Return the frame of a send with a binary header."""
    pairs = b"".join(pair(name.encode(), value.encode()) for name, value in fields.items())
    code = RequestCode.SEND_MESSAGE_V2
    start = struct.pack(">hBhiiii", code, 0, 513, opaque, flag, 0, len(pairs))
    return frame(start + pairs, body, 1)


def usual(dice: random.Random, opaque: int) -> bytes:
    """Return a send that belongs into a run."""
    fields = SEND_FIELDS | {name: dice.choice(values) for name, values in USUAL.items()}
    if dice.random() < 0.1:
        fields["l"] = "16"
    if dice.random() < 0.1:
        del fields[dice.choice("jkmn")]
    if dice.random() < 0.1:
        fields = dict(dice.sample(sorted(fields.items()), len(fields)))
    return send(fields, dice.randbytes(dice.choice((1, 4, 200))), opaque)


def mutated(dice: random.Random) -> bytes:
    """Return sends, some with hostile values, some bytes of them changed."""
    frames: list[bytes] = []
    for number in range(dice.randrange(1, 20)):
        data = usual(dice, number - 5)
        if dice.random() < 0.1:
            name = dice.choice(list(UNUSUAL))
            data = send(SEND_FIELDS | {"i": KEY, name: dice.choice(UNUSUAL[name])}, b"x", number)
        if dice.random() < 0.1:
            changed = bytearray(data)
            change(dice, changed, (), b"", len(changed))
            data = bytes(changed)
        frames.append(data)
    stream = b"".join(frames)
    return stream[: dice.randrange(len(stream))] if dice.random() < 0.2 else stream


@functools.cache
def _runs() -> SendRuns:
    return SendRuns(MOST)


def find(data: bytes, at: int = 0) -> Run:
    """Return the run at a position."""
    name, own = (np.frombuffer(text.encode(), np.uint8) for text in (TOPIC, OWN))
    return _runs().find(data, at, name, QUEUES, own)


def check(data: bytes) -> int:
    """See that a run is what reading its frames one by one says; return how many it has."""
    run = find(data)
    drafts, texts = run.drafts.rows, run.drafts.texts.tobytes()
    commands = list(FrameReader(Limits(MOST.frame, MOST.header)).feed(data[: run.end]))
    assert len(commands) == len(drafts) == len(run.sends)
    at = 0
    for command, draft, sent in zip(commands, drafts, run.sends, strict=True):
        header = command.header(SendMessageHeaderV2)
        assert (command.code, command.flag) == (RequestCode.SEND_MESSAGE_V2, 0)
        assert (command.remark, header.topic) == (None, TOPIC)
        assert not header.batch
        assert run.queue_ids[draft["queue"]] == draft["queue_id"] == header.queue_id < QUEUES
        assert (draft["flag"], draft["sys_flag"]) == (header.flag, header.sys_flag)
        assert draft["born_timestamp"] == header.born_timestamp
        assert draft["reconsume_times"] == (header.reconsume_times or 0)
        assert (draft["regular"], draft["host"], draft["prepared_transaction_offset"]) == (1, 0, 0)
        body_at, body_length = int(draft["body_at"]), int(draft["body_length"])
        assert data[body_at : body_at + body_length] == command.body
        text_at, text_length = int(draft["properties_at"]), int(draft["properties_length"])
        given = header.properties or ""
        given += "" if given.endswith("\x02") else "\x02"
        assert texts[text_at : text_at + text_length] == (given + OWN).encode()
        key_at, key_length = int(sent["key_at"]), int(sent["key_length"])
        key = data[key_at : key_at + key_length].decode()
        start = given.rfind(f"\x02{_KEY_START}") + 1
        assert given[start:].startswith(f"{_KEY_START}{key}\x02")
        assert key.isalnum()
        assert (sent["opaque"], sent["frame_at"]) == (command.opaque, at)
        at += 4 + int.from_bytes(data[at : at + 4])
    assert at == run.end
    return len(drafts)
