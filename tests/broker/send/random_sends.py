"""Sends and batches: random ones, usual and unusual."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence

from mqlake.formats.message_batch import BODY_LENGTH_AT, encode_batch
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Serialization
from tests.hostile.mutate import Field, change
from tests.protocol.messages import SEND_FIELDS, frame, json_header, pair

TOPIC = "TopicTest"
KEY = "UNIQ_KEY\x01AB12\x02"
LITE = f"{KEY}__LITE_TOPIC\x011\x02"
"""Properties of a send to a lite topic, which a broker without lite topics refuses."""

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
        f"{KEY}WAIT\x01false\x02", f"{KEY}WAIT\x01true \x02",
        f"{KEY}TRAN_MSG\x01true\x02", f"{KEY}POP_CK\x01x\x02", f"{KEY}INNER_NUM\x011\x02",
        f"{KEY}_SYS_MSG_PRIORITY_\x011\x02", LITE,
        f"{KEY}INNER_MULTI_DISPATCH\x01%LMQ%$a$b\x02",
        f"INNER_MULTI_QUEUE_OFFSET\x011\x02{KEY}",
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

UNUSUAL_TEXTS = (
    b"__CRC32#\x010000000000\x02", b"a\x01b\x02__CRC32#\x01x",
    b"INNER_MULTI_DISPATCH\x01%LMQ%$a$b\x02",
    b"a\x01" + b"x" * 31_000, b"a\x01" + b"x" * 32_764, b"DELAY\x0118\x02", b"INNER_NUM\x013\x02",
    b"WAIT\x01false\x02", b"\xff\xfe", b"TRAN_MSG\x01true\x02", b"POP_CK\x01x\x02",
    b"TIMER_DEL_UNIQKEY\x01x\x02KEYS\x01k",
)  # fmt: skip
"""Properties of messages of batches. Those of single messages would need more than to be stored."""

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


def json_send(fields: dict[str, str], body: bytes = b"body", **members: object) -> bytes:
    """Return the frame of a send whose header is JSON."""
    return frame(json_header(extFields=fields, **members), body)


def made(
    kind: int,
    fields: dict[str, str],
    body: bytes = b"body",
    opaque: int = 7,
    code: int = RequestCode.SEND_MESSAGE_V2,
) -> bytes:
    """Return a send whose header has a serialization."""
    if kind == Serialization.JSON:
        return json_send(fields, body, opaque=opaque, code=int(code))
    return send(fields, body, opaque, code=code)


def usual(dice: random.Random, opaque: int) -> bytes:
    """Return a send that is usual."""
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


def hostile_body(dice: random.Random) -> bytes:
    """Return what may not be the messages of a batch, or is more than the lane serves."""
    body = bytearray(body_of_batch(dice))
    match dice.randrange(6):
        case 0:
            return bytes(body[: dice.randrange(len(body) + 1)])
        case 1:
            return bytes(body) + bytes(dice.randrange(1, 30))
        case 2:
            # A length that is negative, huge, or nearly right.
            change(dice, body, (Field("body length", BODY_LENGTH_AT, 4),), b"", len(body))
        case 3:
            return encode_batch([(0, b"", b"")] * dice.choice((1, 400, 600, 2900)))
        case 4:
            text = dice.choice(UNUSUAL_TEXTS)
            return encode_batch([(0, b"x", KEY.encode()), (1, b"y", text), (2, text, b"")])
        case _:
            change(dice, body, (), bytes(body), len(body))
    return bytes(body)


def batch(fields: dict[str, str], body: bytes, opaque: int = 7, kind: int = 1) -> bytes:
    """Return the frame of a batch."""
    return made(kind, fields, body, opaque, RequestCode.SEND_BATCH_MESSAGE)


def usual_batch(dice: random.Random, opaque: int, kind: int = 1) -> bytes:
    """Return a batch that is usual."""
    return batch(random_fields(dice, USUAL_IN_BATCHES), body_of_batch(dice), opaque, kind)


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
