"""Messages at every limit and of every byte value.

Each function draws from a `random.Random`, so that crash workloads and hostile generators draw the
same messages from a seed; `MESSAGES` and `PROPERTIES` are the same draws for Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from mqlake.formats import record, record_crc, sys_flag
from mqlake.formats.properties import MAX_LENGTH
from mqlake.store.append.message import Message

T = TypeVar("T")

MAX_TOPIC = 255
NUL_COUNTS = (1, 2, 19, 20, 21, 255, 600)
"""Around the 20 bytes of a queue entry, and more than any search for unwritten space looks at."""
INT_LIMITS = (0, 1, -1, (1 << 31) - 1, -(1 << 31))
LONG_LIMITS = (0, 1, -1, 1 << 31, (1 << 63) - 1, -(1 << 63))
HOSTS = (
    "",
    "0.0.0.0:0",
    "255.255.255.255:65535",
    "127.0.0.1:10911",
    "[0:0:0:0:0:0:0:0]:0",
    "[2001:db8:0:0:0:0:0:1]:4711",
    "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
)
SYSTEM_FLAGS = (
    0,
    sys_flag.MULTI_TAGS,
    sys_flag.NEED_UNWRAP,
    sys_flag.BORN_HOST_V6,
    sys_flag.STORE_HOST_V6,
    sys_flag.COMPRESSION_ZSTD,
    sys_flag.COMPRESSION_TYPE_MASK,
    1 << 30,
)
"""None that has a meaning for the store: no transaction, no inner batch, no compressed body."""
DELAYS = ("0", "1", "18", "19", "-1", "2147483647", "2147483648", "abc", "+1", " 1", "\0")
"""Values of DELAY."""
TIMES = ("0", "1", "-1", "259200", "259201", "999999999999999999", str(1 << 63), "abc", "1\0")
"""Values of TIMER_DELAY_SEC, TIMER_DELAY_MS and TIMER_DELIVER_MS."""
SYSTEM_NAMES = (
    *("REAL_TOPIC", "REAL_QID", "PGROUP", "UNIQ_KEY", "WAIT", "CLUSTER", "TRACE_ON", "MSG_REGION"),
    *("RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "RECONSUME_TIME", "MAX_RECONSUME_TIMES"),
    *("CONSUME_START_TIME", "MIN_OFFSET", "MAX_OFFSET", "POP_CK", "POP_CK_OFFSET", "1ST_POP_TIME"),
    *("TIMER_OUT_MS", "TIMER_ROLL_TIMES", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS"),
    *("TRANSACTION_CHECK_TIMES", "CHECK_IMMUNITY_TIME_IN_SECONDS", "TRAN_PREPARED_QUEUE_OFFSET"),
    *("__transactionId__", "__SHARDINGKEY", "__CRC32#", "INNER_BASE", "DLQ_ORIGIN_TOPIC"),
    *("DLQ_ORIGIN_MESSAGE_ID", "BUYER_ID", "INSTANCE_ID", "CORRELATION_ID", "REPLY_TO_CLIENT"),
)
"""Names that brokers and clients give properties of their own; none changes where a message goes.

Those that do are DELAY and the times of timer messages (`odd_delay`), and `TRAN_MSG`.
"""
STALE_CRC = record_crc.encode(1234567890)
"""The checksum of a record that was consumed from another broker, and sent on."""


def _damaged_looking() -> Iterator[bytes]:
    for count in (1, 8, 20, 600):
        zeros = bytes(count)
        yield b"note\1" + zeros + b"\2"
        yield b"note\1x" + zeros
        yield b"note\1x" + zeros + b"y\2more\1z\2"
        yield zeros
        yield zeros + b"KEYS\1k\2"
    yield b""
    yield b"KEYS\1k"
    yield b"KEYS\1a\0b \0 c\2TAGS\1\0\2"
    yield b"KEYS\1\xff\xfe \xc3\2\x80\1\xed\xa0\x80\2"
    yield b"\1\1\2\2\1\2"
    yield STALE_CRC
    yield b"note\1x\2" + STALE_CRC
    yield STALE_CRC + b"note\1x"
    yield STALE_CRC[:-1]
    yield b"note\1x" + STALE_CRC


DAMAGED_LOOKING = tuple(_damaged_looking())
"""Encoded properties of which no byte is lost, though it seems so."""
_PAIR_END, _VALUE = b"\x02", b"\x01"
_BROKEN_UTF8 = (
    b"\x80",
    b"\xff",
    b"\xc0\x80",
    b"\xc3",
    b"\xe2\x82",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98",
    b"\xf8\x88\x80\x80\x80",
    b"\xf4\x90\x80\x80",
)
_TEXTS = (
    "x",
    " ",
    "\0",
    "\x7f",
    "ä",
    "€",
    "😀",
    "\u2028",
    "\ufeff",
    "\u0300",
    "\U0010ffff",
    "\x01",
)
_LETTERS = "abcXYZ019%|-_"
_ODD_LETTERS = " ~#$äß€😀:*?'\"\u00a0\u200b\U0010ffff"


def odd_topic(dice: Random, most: int = MAX_TOPIC, *, of_clients: bool = False) -> str:
    """Return a name of a topic, often as long as it may be.

    Args:
        most: bytes.
        of_clients: use only letters that brokers accept from clients, 127 at most.
    """
    letters = _LETTERS if of_clients else dice.choice((_LETTERS, _LETTERS + _ODD_LETTERS))
    lengths = (1, 2, 126, 127) if of_clients else (1, 2, 126, 127, 128, 129, 254, 255)
    length = dice.choice([*(n for n in lengths if n <= most), dice.randint(1, most)])
    name = "".join(_long_choices(dice, letters, min(length, 127) if of_clients else length))
    while len(name.encode()) > length:
        name = name[:-1]
    return name if name.strip(" .") else "T" * length


def odd_body(dice: Random, most: int = 4 << 20) -> bytes:
    """Return a body of at most so many bytes."""
    return dice.choice(_BODIES)(dice, most)[:most]


def _record_like(dice: Random, most: int) -> bytes:
    """Return a record, or one that lacks its end, as it would lie at an offset of a log."""
    inner = record.encode(
        topic="T",
        body=b"inner",
        properties={"KEYS": "k"},
        queue_id=0,
        queue_offset=dice.choice((0, 1, 100)),
        physical_offset=dice.choice((0, 91, 1 << 20)),
        flag=0,
        sys_flag=0,
        born_timestamp=1,
        born_host="127.0.0.1:1",
        store_timestamp=1,
        store_host="127.0.0.1:10911",
        reconsume_times=0,
        prepared_transaction_offset=0,
    )
    return inner[dice.choice((0, 0, 4)) :] * dice.choice((1, 2))


_BODIES: tuple[Callable[[Random, int], bytes], ...] = (
    lambda dice, most: b"",
    lambda dice, most: b"\0",
    lambda dice, most: bytes(dice.choice((*NUL_COUNTS, 4096))),
    lambda dice, most: bytes(range(256)),
    lambda dice, most: b"\xff" * dice.choice((1, 4, 100)),
    lambda dice, most: _long_bytes(dice, dice.randint(0, min(most, 300))),
    lambda dice, most: b"text" + bytes(dice.choice(NUL_COUNTS)),
    lambda dice, most: record.V1_MAGIC.to_bytes(4, "big") * 3,
    # What stands where a segment's used part ends.
    lambda dice, most: b"\0\0\1\0" + record.BLANK_MAGIC.to_bytes(4, "big"),
    _record_like,
    lambda dice, most: bytes(most) if dice.random() < 0.2 else b"few",
    lambda dice, most: b"x" * most if dice.random() < 0.2 else b"many",
)


def odd_properties(dice: Random, most: int = MAX_LENGTH, *, of_system: bool = False) -> bytes:
    """Return properties as a client may send them, mostly of at most so many bytes, none delayed.

    Args:
        of_system: with names that brokers and clients give properties of their own.
    """
    drawn = b"".join(dice.choice(_PROPERTIES)(dice) for _ in range(dice.choice((0, 1, 1, 2, 4))))
    if of_system:
        name = dice.choice(SYSTEM_NAMES).encode()
        drawn += name + _VALUE + dice.choice((b"1", b"\0", b"-1", b"x" * 40, b"\xff")) + _PAIR_END
    if dice.random() < 0.25:
        drawn = _filled(drawn, most + dice.choice((0, 0, 0, -1, 1)), dice)
    while len(drawn) > most + 1:
        # A cut at a pair's end leaves the others as they are; one elsewhere is as odd as any.
        drawn = drawn[: drawn.rfind(_PAIR_END, 0, most - 1) + 1] if dice.random() < 0.5 else b""
    return drawn


def _filled(drawn: bytes, length: int, dice: Random) -> bytes:
    """Return properties of exactly so many bytes, if those that are drawn are fewer."""
    head = drawn + (_PAIR_END if drawn and not drawn.endswith(_PAIR_END) else b"") + b"fill\x01"
    end = dice.choice((_PAIR_END, b"", b"\0"))
    room = length - len(head) - len(end)
    return head + dice.choice((b"v", b"\0", b" ")) * room + end if room > 0 else drawn


def _pair(name: bytes, value: bytes) -> bytes:
    return name + _VALUE + value + _PAIR_END


def _nuls(dice: Random) -> bytes:
    nuls = bytes(dice.choice(NUL_COUNTS))
    return dice.choice(
        (
            nuls,
            _pair(b"a", nuls),
            _pair(nuls, b"v"),
            _pair(nuls, nuls),
            _pair(b"a", b"v" + nuls),
            _pair(b"a", nuls + b"v"),
            _pair(b"a", b"v" + nuls + b"w"),
            _pair(b"KEYS", nuls),
            _pair(b"TAGS", b"t" + nuls),
            b"a" + _VALUE + nuls,
            (b"\0" + _PAIR_END) * len(nuls),
            (b"\0" + _VALUE) * len(nuls),
        )
    )


def _separators(dice: Random) -> bytes:
    return dice.choice(
        (
            _VALUE,
            _PAIR_END,
            _PAIR_END * 2 + _pair(b"a", b"1"),
            _VALUE + _pair(b"a", b"1"),
            b"a" + _VALUE * 2 + b"1" + _PAIR_END,
            b"a" + _VALUE + b"1" + _VALUE + b"2" + _PAIR_END,
            _pair(b"a", b""),
            _pair(b"", b"1"),
            b"a" + _PAIR_END,
            b"a",
            b"a" + _VALUE + b"1",
            _PAIR_END * 20,
            _VALUE * 21,
        )
    )


def _keys(dice: Random) -> bytes:
    return _pair(b"KEYS", odd_keys(dice).encode())


def odd_keys(dice: Random) -> str:
    """Return the text of a KEYS property: many keys, long ones, empty ones."""
    return dice.choice(
        (
            "k",
            " k ",
            "  ",
            "k  k",
            " ".join(str(number) for number in range(dice.choice((20, 1000)))),
            "k" * dice.choice((100, 8000)),
            "k" + "\0" * 20,
            "😀 " * 20,
            "\t\n k",
            "#0 T#k",
        )
    )


def odd_tags(dice: Random) -> str:
    """Return the text of a TAGS property."""
    return dice.choice(
        ("t", "*", "a||b", " ", "😀", "\0", "t" * 200, "AaAa", "BBBB", "ä€", "1 || 2", "\U0010ffff")
    )


_PROPERTIES: tuple[Callable[[Random], bytes], ...] = (
    _nuls,
    _nuls,
    _separators,
    _keys,
    lambda dice: _pair(b"TAGS", odd_tags(dice).encode()),
    lambda dice: _pair(b"name", dice.choice(_TEXTS).encode() * dice.choice((1, 20, 1000))),
    lambda dice: _pair(dice.choice(_TEXTS).encode(), b"value"),
    lambda dice: _pair(b"broken", dice.choice(_BROKEN_UTF8) * dice.choice((1, 20))),
    lambda dice: _pair(dice.choice(_BROKEN_UTF8), b"broken"),
    lambda dice: dice.choice(_BROKEN_UTF8),
    lambda dice: _pair(b"twice", b"1") + _pair(b"twice", b"2"),
    lambda dice: _pair(b"TAGS", b"first") + _pair(b"TAGS", b"last"),
    lambda dice: _pair(b"bytes", bytes(set(range(256)) - {1, 2})),
    lambda dice: b"".join(_pair(b"p%d" % number, b"v") for number in range(200)),
    lambda dice: _long_bytes(dice, dice.choice((1, 30, 300))),
)


def odd_pairs(dice: Random, most: int = MAX_LENGTH) -> dict[str, str]:
    """Return properties by names, as applications give them; some cannot be stored."""
    names = ("a", "A b", "ä", "😀", "\0", "x" * 100, "buyer", "\x7f")
    values = (*_TEXTS, "v" * min(300, most), "\0" * dice.choice(NUL_COUNTS), "1", "-1")
    chosen = {dice.choice(names): dice.choice(values) for _ in range(dice.choice((0, 1, 3)))}
    if dice.random() < 0.1:
        chosen[dice.choice(("", "a\x01", "\ud800", "a\x02"))] = "v"
    if dice.random() < 0.1:
        chosen["a"] = dice.choice(("", "\x02", "\udfff"))
    return chosen


def odd_delay(dice: Random) -> dict[str, str]:
    """Return properties that ask for a delay, or ask for one wrongly."""
    name = dice.choice(("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"))
    return {name: dice.choice(DELAYS if name == "DELAY" else TIMES)}


def odd_message(
    dice: Random,
    topic: str | None = None,
    *,
    most_body: int = 1 << 16,
    most_properties: int = MAX_LENGTH,
    of_system: bool = False,
) -> Message:
    """Return a message that a store takes, or has a reason to refuse; it is never delayed.

    Args:
        topic: where it goes; without one to an odd topic.
        most_body, most_properties: bytes.
        of_system: with the names of `SYSTEM_NAMES`.
    """
    message = Message(
        topic=odd_topic(dice) if topic is None else topic,
        body=odd_body(dice, most_body),
        flag=_rarely(dice, INT_LIMITS, 0),
        sys_flag=_rarely(dice, SYSTEM_FLAGS, 0),
        born_timestamp=_rarely(dice, LONG_LIMITS, 0),
        born_host=_rarely(dice, HOSTS, ""),
        reconsume_times=_rarely(dice, INT_LIMITS, 0),
        prepared_transaction_offset=_rarely(dice, LONG_LIMITS, 0),
    )
    if dice.random() < 0.6:
        encoded = odd_properties(dice, most_properties, of_system=of_system)
        return msgspec.structs.replace(message, encoded_properties=encoded)
    keys = odd_keys(dice)
    return msgspec.structs.replace(
        message,
        tags=odd_tags(dice) if dice.random() < 0.3 else None,
        keys=dice.choice(("", keys[: most_properties // 4], (), ["a", "", "b c"])),
        properties=dice.choice((None, {}, odd_pairs(dice, most_properties))),
    )


def _rarely(dice: Random, odd: Sequence[T], usual: T) -> T:
    return dice.choice(odd) if dice.random() < 0.3 else usual


def _long_choices(dice: Random, letters: str, count: int) -> list[str]:
    # Many draws of Hypothesis's own would use up what an example may draw.
    return Random(dice.getrandbits(32)).choices(letters, k=count)


def _long_bytes(dice: Random, count: int) -> bytes:
    return Random(dice.getrandbits(32)).randbytes(count)


DICE = st.integers(0, (1 << 32) - 1).map(Random)
MESSAGES = st.randoms(use_true_random=False).map(odd_message)
PROPERTIES = st.randoms(use_true_random=False).map(odd_properties)
TOPICS = st.randoms(use_true_random=False).map(odd_topic)
