"""What a script has: connections, and steps in which each of them sends some bytes."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from mqlake.protocol.signature import Credentials
from tests.broker.lane.mixed.requests import ANN, BOB, QUEUES, Asked, Requests, damaged
from tests.remoting.proxy_protocol.headers import binary, line

WAYS: Final = ("clear", "TLS 1.3", "TLS 1.3", "TLS 1.2")
OPEN: Final = "open"
ENDS: Final = (
    *((OPEN,) * 9),  # once all is answered
    "half",  # nothing more is sent
    "cut",  # and the last bytes are missing
    "reset",  # in the middle
    "damaged",  # a frame
    "notify",  # TLS says that this was all, the socket does not
    "flipped",
    "flipped",  # one bit of the last records
    "clear text",  # after the last record
    "surprise",  # new keys, or another handshake
)
_OF_TLS: Final = ("notify", "flipped", "clear text", "surprise")
READERS: Final = ("at once",) * 5 + ("little", "late")
"""When a client reads: as soon as it can, a few bytes at a time, or when all others are done."""
THEN: Final = ("",) * 60 + ("leave", "clear", "sweep")
"""What the broker does after a step."""


class Line(NamedTuple):
    """One connection.

    Attributes:
        way: how it is encrypted.
        header: of a proxy, before anything else.
        asked: its requests.
        stream: their bytes.
        end: how it ends.
        reads: when its client reads.
        is_warm: whether its first request is answered before the others are sent.
    """

    way: str
    header: bytes
    asked: list[Asked]
    stream: bytes
    end: str
    reads: str
    is_warm: bool
    own: bytes


class Step(NamedTuple):
    """Some bytes of one connection, or of several that are served together.

    Attributes:
        places: of the connections.
        size: how many bytes are written to each.
        record: bytes that are encrypted together.
        push: how many bytes are sent at most.
        rounds: how often the event loop turns afterwards.
        then: what the broker does.
    """

    places: list[int]
    size: int
    record: int
    push: int
    rounds: int
    then: str


class Script(NamedTuple):
    seed: int
    lines: list[Line]
    steps: list[Step]

    @property
    def is_damaged(self) -> bool:
        """Whether any request may be another one than was drawn."""
        return any(each.end == "damaged" for each in self.lines)


def draw(seed: int, *, is_closed: bool) -> Script:
    """Return the script of a seed.

    Args:
        is_closed: whether the broker asks for signatures.
    """
    dice = random.Random(seed)
    count = dice.choice((1, 2, 3, 4, 6, 6))
    lines = [_line(dice, seed, place, is_closed=is_closed) for place in range(count)]
    sizes = dice.choice(((1, 40), (1, 400), (100, 1500), (100, 1500), (100, 3000), (1000, 70_000)))
    steps = [_step(dice, count, sizes) for _ in range(dice.choice((5, 20, 40)))]
    return Script(seed, lines, steps)


def _line(dice: random.Random, seed: int, place: int, *, is_closed: bool) -> Line:
    assert place < QUEUES
    way, end, reads = dice.choice(WAYS), dice.choice(ENDS), dice.choice(READERS)
    if way == "clear" and end in _OF_TLS:
        end = OPEN
    users: list[Credentials | None] = [dice.choice((*(None,) * 9, ANN))]
    if is_closed:
        users = dice.choice((*([ANN],) * 8, [BOB], [ANN, BOB], [ANN, None], [None]))
    requests = Requests(dice, seed, place, users)
    asked = requests.draw(dice.choice((1, 4, 25, 25, 50)))
    stream, is_warm = b"".join(each.frame for each in asked), dice.random() < 0.8
    if end == "damaged":
        safe = len(asked[0].frame) if is_warm else 0
        stream, reads = stream[:safe] + damaged(stream[safe:], dice), "at once"
    return Line(way, _header(dice), asked, stream, end, reads, is_warm, requests.own)


def _header(dice: random.Random) -> bytes:
    client = f"10.1.{dice.randrange(256)}.7"
    return dice.choice((b"", b"", b"", line(client, 5000), binary(client, 5000)))


def _step(dice: random.Random, count: int, sizes: tuple[int, int]) -> Step:
    return Step(
        dice.sample(range(count), dice.choice((1, count, dice.randint(1, count)))),
        dice.randint(*sizes),
        dice.choice((1 << 14, 1 << 14, 1000, 50)) if sizes[1] > 1000 else dice.choice((1 << 14, 7)),
        dice.choice((1 << 20, 1 << 20, 1 << 20, sizes[0], sizes[1] // 2)),
        dice.choice((0, 1, 3, 3)),
        dice.choice(THEN),
    )
