"""Pops and transactions at a broker, by requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from mqlake.formats.message_id import decode_message_id
from mqlake.formats.sys_flag import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.pop import AckHeader, ChangeInvisibleTimeHeader
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.protocol.headers.transactions import EndTransactionHeader
from mqlake.protocol.retry_topics import marked
from tests.broker.pop import popping
from tests.broker.running import to
from tests.comparison.run import Step
from tests.comparison.wire import GROUP, TOPIC, WireSubject, WireWorkload
from tests.crash.expectation import require

_INVISIBLE = 20.0
_PATIENCE = 300.0
"""Seconds in which a message comes that nobody has acknowledged."""


class _Popper:
    """Who pops messages and acknowledges them.

    What was acknowledged must never come again, unless the broker was killed. A send that the disk
    refused in part may have stored its message, and was repeated: then there are two with the same
    body, and each is acknowledged.
    """

    def __init__(self, subject: WireSubject) -> None:
        self._subject = subject
        self._held: dict[str, dict[_Place, tuple[popping.Popped, float]]] = {}
        self._stored: dict[str, set[_Place]] = {}
        self._acknowledged = Counter[str]()

    def _pop(self) -> None:
        header = popping.header(
            consumer_group=GROUP, topic=TOPIC, invisible_time=int(_INVISIBLE * 1000)
        )
        accepted = ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT
        answer = self._subject.request(RequestCode.POP_MESSAGE, header, accepted=accepted)
        for each in popping.read(answer):
            self._take(each)

    def _take(self, popped: popping.Popped) -> None:
        body, place = popped.body, _place(popped)
        stored = self._stored.setdefault(body, set())
        if place.topic == TOPIC:
            stored.add(place)
        if body not in self._acknowledged:
            until = self._subject.now + _INVISIBLE - 5
            self._held.setdefault(body, {})[place] = popped, until
            return
        again = self._acknowledged[body] >= len(stored) and not self._subject.was_killed
        require(not again, f"{body} was acknowledged, and comes again")
        self._acknowledge(popped)

    def _hold(self, body: str) -> list[popping.Popped]:
        """Return the messages with a body that are still this consumer's, at least one."""
        until = self._subject.now + _PATIENCE
        while not (found := self._in_time(body)):
            require(self._subject.now < until, f"{body} does not come")
            self._pop()
            self._subject.sleep(1.0)
        return found

    def _in_time(self, body: str) -> list[popping.Popped]:
        now = self._subject.now
        return [popped for popped, until in self._held.get(body, {}).values() if until >= now]

    def receive(self, *bodies: str) -> Step:
        def act() -> None:
            for body in bodies:
                self._hold(body)

        return Step(f"receive {bodies}", act)

    def acknowledge(self, body: str) -> Step:
        def act() -> None:
            for popped in self._hold(body):
                self._acknowledge(popped)
            del self._held[body]

        return Step(f"acknowledge {body}", act)

    def _acknowledge(self, popped: popping.Popped) -> None:
        place = _place(popped)
        header = AckHeader(
            consumer_group=GROUP,
            topic=place.topic,
            queue_id=place.queue_id,
            extra_info=popped.receipt,
            offset=place.offset,
        )
        self._subject.request(RequestCode.ACK_MESSAGE, header)
        self._acknowledged[popped.body] += 1

    def change(self, body: str, seconds: float) -> Step:
        """Let a message come again after so many seconds."""

        def act() -> None:
            for popped in self._hold(body):
                place = _place(popped)
                header = ChangeInvisibleTimeHeader(
                    consumer_group=GROUP,
                    topic=place.topic,
                    queue_id=place.queue_id,
                    extra_info=popped.receipt,
                    offset=place.offset,
                    invisible_time=int(seconds * 1000),
                )
                self._subject.request(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
            del self._held[body]

        return Step(f"change {body}", act)

    def wait(self) -> Step:
        """Pop until everything has come that comes."""

        def act() -> None:
            self._subject.sleep(_INVISIBLE + 2)
            self._pop()

        return Step("wait", act)


class _Place(NamedTuple):
    """Where a popped message is stored."""

    topic: str
    queue_id: int
    offset: int


def _place(popped: popping.Popped) -> _Place:
    topic = marked(popped.receipt.split(" ")[4], TOPIC, GROUP)
    return _Place(topic, popped.record.queue_id, popped.record.queue_offset)


def _pops(s: WireSubject) -> Iterator[Step]:
    popper = _Popper(s)
    yield s.create(TOPIC)
    yield s.create_group()
    for number in range(3):
        yield s.send(f"p{number}", queue_id=number % 2)
    yield popper.receive("p0", "p1", "p2")
    yield popper.acknowledge("p0")
    yield popper.change("p1", 3.0)
    yield popper.receive("p1")
    yield popper.acknowledge("p1")
    yield s.restart()
    yield popper.wait()
    yield popper.acknowledge("p2")


class _Halves:
    """Who sends half messages."""

    def __init__(self, subject: WireSubject) -> None:
        self._subject = subject
        self._sent: dict[str, EndTransactionHeader] = {}

    def prepare(self, body: str) -> Step:
        pairs = f"TRAN_MSG\x01true\x02PGROUP\x01producers\x02UNIQ_KEY\x01{body}\x02"

        def act() -> None:
            header = to(
                TOPIC,
                properties=pairs,
                sys_flag=4,
                born_timestamp=self._subject.world.clock.milliseconds(),
            )
            code = RequestCode.SEND_MESSAGE_V2
            answer = self._subject.request(code, header, body.encode())
            found = answer.header(SendMessageResponseHeader)
            self._sent[body] = EndTransactionHeader(
                producer_group="producers",
                tran_state_table_offset=found.queue_offset,
                commit_log_offset=decode_message_id(found.msg_id)[1],
                commit_or_rollback=TRANSACTION_COMMIT,
            )

        return Step(f"prepare {body}", act)

    def end(self, body: str, outcome: int) -> Step:
        def act() -> None:
            header = self._sent[body]
            header.commit_or_rollback = outcome
            self._subject.request(RequestCode.END_TRANSACTION, header)

        return Step(f"end {body}", act)


def _ends(s: WireSubject) -> Iterator[Step]:
    halves = _Halves(s)
    yield s.create(TOPIC)
    for number in range(4):
        yield halves.prepare(f"h{number}")
    yield halves.end("h0", TRANSACTION_COMMIT)
    yield halves.end("h1", TRANSACTION_ROLLBACK)
    yield s.restart()
    yield halves.end("h2", TRANSACTION_COMMIT)
    yield halves.prepare("h4")
    yield halves.end("h4", TRANSACTION_COMMIT)


_RETRIES = (f"%RETRY%{GROUP}",)
_SYNC = {"flushDiskType": "SYNC_FLUSH"}
CONSUMPTION_WORKLOADS = [
    WireWorkload("wire-pops", _pops, ignored=_RETRIES),
    WireWorkload("wire-pops-synced", _pops, _SYNC, ignored=_RETRIES),
    WireWorkload("wire-transactions", _ends),
    WireWorkload("wire-transactions-synced", _ends, _SYNC),
]
