"""What connections send: sends, batches and pulls, usual and unusual ones, of any user."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import ONEWAY, request
from mqlake.protocol.frames import decode, encode
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION
from mqlake.protocol.signature import Credentials, signed
from tests.broker.lane.pull_lanes import pull_frame
from tests.broker.lane.raw_client import FIELDS, KINDS, usual
from tests.broker.pull.pulls import pull_header
from tests.broker.send.random_sends import KEY, batch, made

TOPIC: Final = "Mixed"
QUEUES: Final = 8
"""Each connection sends to a queue of its own."""
PULLED: Final = "Pulled"
"""A topic whose messages are there from the beginning."""
MESSAGES: Final = 300
ANN, BOB = Credentials("ann", "ann-password"), Credentials("bob", "bob-password")
"""Who may send and pull, and who may only send."""
_FORGER: Final = Credentials("ann", "another-password")
_LARGE: Final = b"L" * 70_000
"""Of a body that the lane leaves to the ordinary path."""
_LONG: Final = b"l" * 55_000
"""Of a body that it does not."""


class Asked(NamedTuple):
    """One request.

    Attributes:
        frame: its bytes.
        opaque: its number, which no other request of the script has.
        bodies: of the messages that are stored if it is accepted.
        is_answered: whether it has an answer.
        is_pull: whether it is a pull.
    """

    frame: bytes
    opaque: int
    bodies: tuple[bytes, ...] = ()
    is_answered: bool = True
    is_pull: bool = False


class Requests:
    """Draws the requests of one connection.

    Args:
        script: the seed of the script.
        place: the number of the connection in it; also its queue.
        users: who signs requests; None for nobody.
    """

    def __init__(
        self, dice: random.Random, script: int, place: int, users: list[Credentials | None]
    ) -> None:
        self._dice, self._place, self._users = dice, place, users
        self.own = b"%d/%d/" % (script, place)
        self._at = dice.randrange(MESSAGES)
        self._number = 0
        # Some connections use one form of headers, others both.
        self._forms = dice.choice((KINDS, KINDS[:1], KINDS[1:]))
        pulls, others = dice.choice((0, 0, 2, 30)), dice.choice((0, 0, 1))
        self._weights = {
            self._usual: 30, self._batch: 4, self._pull: pulls, self._unusual: 2 * others,
            self._long: others, self._large: others, self._refused: 2 * others,
            self._oneway: others, self._other: others,
        }  # fmt: skip

    def draw(self, count: int) -> list[Asked]:
        """Return so many requests."""
        kinds, weights = zip(*self._weights.items(), strict=True)
        return [self._of_a_user(kind()) for kind in self._dice.choices(kinds, weights, k=count)]

    def _of_a_user(self, asked: Asked) -> Asked:
        user, dice = self._dice.choice(self._users), self._dice
        if user is None:
            return asked
        if dice.random() < 0.01:
            user = _FORGER
        return asked._replace(frame=encode(signed(decode(asked.frame), user)))

    def _next(self) -> tuple[int, bytes]:
        """Return the next opaque, and the beginning of a body."""
        self._number += 1
        return self._place * 1000 + self._number, self.own + b"%d/" % self._number

    def _send(self, more: bytes, **fields: str) -> Asked:
        opaque, body = self._next()
        own = FIELDS | {"b": TOPIC, "e": str(self._place)} | fields
        frame = made(self._dice.choice(self._forms), own, body + more, opaque)
        return Asked(frame, opaque, (body + more,))

    def _usual(self) -> Asked:
        return self._send(b"u" * self._dice.choice((0, 1, 60, 1000, 5000)))

    def _unusual(self) -> Asked:
        return self._send(b"", i="KEYS\1k\2")

    def _long(self) -> Asked:
        return self._send(_LONG)

    def _large(self) -> Asked:
        return self._send(_LARGE)

    def _refused(self) -> Asked:
        return self._send(b"", e="99")._replace(bodies=())

    def _batch(self) -> Asked:
        opaque, body = self._next()
        bodies = tuple(body + b"%d" % each for each in range(self._dice.choice((1, 2, 5))))
        fields = FIELDS | {"b": TOPIC, "e": str(self._place), "m": "true"}
        packed = encode_batch([(0, each, KEY.encode()) for each in bodies])
        return Asked(batch(fields, packed, opaque, self._dice.choice(self._forms)), opaque, bodies)

    def _oneway(self) -> Asked:
        opaque, body = self._next()
        asked = decode(usual(opaque, 0, b=TOPIC, e=str(self._place)))
        asked.body, asked.flag = body, asked.flag | ONEWAY
        asked.encoded = b""
        return Asked(encode(asked), opaque, (body,), is_answered=False)

    def _other(self) -> Asked:
        opaque, _ = self._next()
        asked = request(RequestCode.GET_BROKER_CLUSTER_INFO)
        asked.opaque = opaque
        return Asked(encode(asked), opaque)

    def _pull(self) -> Asked:
        opaque, _ = self._next()
        dice = self._dice
        if dice.random() < 0.2:
            self._at = dice.choice((0, MESSAGES, dice.randrange(MESSAGES)))
        count = dice.choice((1, 1, 8, 32))
        header = pull_header(
            self._at,
            topic=PULLED,
            max_msg_nums=count,
            commit_offset=self._at,
            sys_flag=HAS_SUBSCRIPTION | dice.choice((0, COMMITS_OFFSET)),
        )
        self._at = min(self._at + count, MESSAGES)
        return Asked(pull_frame(opaque, dice.choice(self._forms), header), opaque, is_pull=True)


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Return a stream of which some bytes are others, missing, or twice there."""
    found = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 3))):
        if not found:
            break
        at = dice.randrange(len(found))
        match dice.randrange(4):
            case 0:
                found[at] = dice.randrange(256)
            case 1:
                found[at] ^= 1 << dice.randrange(8)
            case 2:
                del found[at : at + dice.randrange(1, 9)]
            case _:
                found[at:at] = found[at : at + dice.randrange(1, 9)]
    return bytes(found)
