"""Pops and transactions at a broker, by requests."""

from __future__ import annotations

from collections.abc import Iterator

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

    What was acknowledged must never come again, unless the broker was killed.
    """

    def __init__(self, subject: WireSubject) -> None:
        self._subject = subject
        self._held: dict[str, tuple[popping.Popped, float]] = {}
        self._acknowledged: set[str] = set()

    def _pop(self) -> None:
        header = popping.header(
            consumer_group=GROUP, topic=TOPIC, invisible_time=int(_INVISIBLE * 1000)
        )
        accepted = ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT
        answer = self._subject.request(RequestCode.POP_MESSAGE, header, accepted=accepted)
        for each in popping.read(answer):
            again = each.body in self._acknowledged and not self._subject.was_killed
            require(not again, f"{each.body} was acknowledged, and comes again")
            self._held[each.body] = each, self._subject.now + _INVISIBLE - 5

    def _hold(self, body: str) -> popping.Popped:
        """Return a message that is still this consumer's."""
        until = self._subject.now + _PATIENCE
        while body not in self._held or self._held[body][1] < self._subject.now:
            require(self._subject.now < until, f"{body} does not come")
            self._pop()
            self._subject.sleep(1.0)
        return self._held[body][0]

    def receive(self, *bodies: str) -> Step:
        def act() -> None:
            for body in bodies:
                self._hold(body)

        return Step(f"receive {bodies}", act)

    def acknowledge(self, body: str) -> Step:
        def act() -> None:
            popped = self._hold(body)
            header = AckHeader(
                consumer_group=GROUP,
                topic=_topic(popped),
                queue_id=popped.record.queue_id,
                extra_info=popped.receipt,
                offset=popped.record.queue_offset,
            )
            self._subject.request(RequestCode.ACK_MESSAGE, header)
            self._acknowledged.add(body)

        return Step(f"acknowledge {body}", act)

    def change(self, body: str, seconds: float) -> Step:
        """Let a message come again after so many seconds."""

        def act() -> None:
            popped = self._hold(body)
            header = ChangeInvisibleTimeHeader(
                consumer_group=GROUP,
                topic=_topic(popped),
                queue_id=popped.record.queue_id,
                extra_info=popped.receipt,
                offset=popped.record.queue_offset,
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


def _topic(popped: popping.Popped) -> str:
    return marked(popped.receipt.split(" ")[4], TOPIC, GROUP)


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
