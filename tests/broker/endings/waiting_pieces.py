"""The state of messages that wait to be delivered, and of groups that commit offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from mqlake.formats.message_id import decode_message_id
from mqlake.formats.sys_flag import TRANSACTION_COMMIT, TRANSACTION_PREPARED
from mqlake.protocol import naming
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.offsets import (
    OffsetHeader,
    QueryConsumerOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from mqlake.protocol.headers.send import SendBackHeader, SendMessageResponseHeader
from mqlake.protocol.headers.transactions import EndTransactionHeader
from tests.broker.endings import events
from tests.broker.endings.pieces import Messages, Outcome, Piece, Seen
from tests.broker.endings.scene import QUEUES, Pace, Scene

OLD, NEW = ("old0", "old1", "old2"), ("new0", "new1")
_ALL_WAIT = Messages(frozenset(), frozenset(OLD), frozenset(NEW))
_LAST_WAITS = Messages(frozenset(OLD[:-1]), frozenset(OLD[-1:]), frozenset(NEW))

_OF_TOPIC = {
    events.TOPIC: Outcome.ENDS,
    events.TOPIC_KILLED: Outcome.ENDS,
    events.GROUP: Outcome.KEPT,
    events.GROUP_ONLY: Outcome.KEPT,
    events.QUEUES_REDUCED: Outcome.KEPT,
    events.RESTART: Outcome.KEPT,
    events.KILL: Outcome.KEPT,
    events.REVIVE_QUEUES: Outcome.KEPT,
    events.CLUSTER: Outcome.KEPT,
    events.ROLE: Outcome.KEPT,
}
_OF_GROUP = _OF_TOPIC | {events.TOPIC: Outcome.KEPT, events.TOPIC_KILLED: Outcome.KEPT}
_OF_BOTH = _OF_TOPIC | {events.GROUP: Outcome.ANEW, events.KILL: Outcome.AGAIN}


@dataclass
class WaitingPiece:
    """Messages that wait in some way.

    Attributes:
        bring_about: sends the old messages.
        found: returns what a consumer gets, after the event and some time.
        outcomes: by event.
        messages: those that a consumer has got before the event, and the others.
        sent: what `bring_about` notes for `found`.
    """

    name: str
    topic: str
    bring_about: Callable[[Scene, WaitingPiece], Awaitable[None]]
    found: Callable[[Scene, WaitingPiece], Awaitable[list[str]]]
    outcomes: Mapping[str, Outcome]
    lasts: Callable[[Pace], float]
    messages: Messages = _ALL_WAIT
    sent: list[SendMessageResponseHeader] = field(default_factory=list[SendMessageResponseHeader])
    is_slow: bool = False

    @property
    def group(self) -> str:
        return f"{self.topic}Group"

    def tells(self) -> bool:
        return True

    def named(self, topic: str) -> Piece:
        return replace(self, topic=topic)

    async def begin(self, scene: Scene) -> None:
        await scene.create(self.topic, self.group)
        await self.bring_about(scene, self)
        await scene.settle()

    async def look(self, scene: Scene, outcome: Outcome) -> Seen:
        await scene.send(self.topic, *NEW)
        expected = self.messages.expected(outcome)
        got = Counter[str]()
        for number in range(scene.pace.most):
            got |= Counter(await self.found(scene, self))
            if got.keys() >= expected and (number >= scene.pace.least or _is_all(got)):
                break
            await scene.later(scene.pace.step)
        return Seen(self.messages, got)


def _is_all(got: Counter[str]) -> bool:
    return got.keys() >= {*OLD, *NEW}


async def _delayed(scene: Scene, piece: WaitingPiece) -> None:
    await scene.send(piece.topic, *OLD, properties=f"DELAY\x01{scene.pace.level}\x02")


async def _timed(scene: Scene, piece: WaitingPiece) -> None:
    await scene.send(piece.topic, *OLD, properties=f"TIMER_DELAY_SEC\x01{scene.pace.delay}\x02")


async def _prepared(scene: Scene, piece: WaitingPiece) -> None:
    properties = f"TRAN_MSG\x01true\x02PGROUP\x01{piece.group}\x02"
    piece.sent = await scene.send(
        piece.topic, *OLD, properties=properties, sys_flag=TRANSACTION_PREPARED
    )


async def _sent_back(scene: Scene, piece: WaitingPiece) -> None:
    for sent in await scene.send(piece.topic, *OLD):
        _, offset = decode_message_id(sent.msg_id)
        header = SendBackHeader(offset=offset, group=piece.group, delay_level=scene.pace.level)
        await scene.done(RequestCode.CONSUMER_SEND_MSG_BACK, header)
    await scene.flush()


async def _committed(scene: Scene, piece: WaitingPiece) -> None:
    await scene.send(piece.topic, *OLD)
    header = UpdateConsumerOffsetHeader(
        consumer_group=piece.group,
        topic=piece.topic,
        queue_id=QUEUES - 1,
        commit_offset=len(OLD) - 1,
    )
    await scene.done(RequestCode.UPDATE_CONSUMER_OFFSET, header)


async def _in_topic(scene: Scene, piece: WaitingPiece) -> list[str]:
    return await scene.bodies(piece.topic)


async def _in_retry_topic(scene: Scene, piece: WaitingPiece) -> list[str]:
    new = [body for body in await scene.bodies(piece.topic) if body in NEW]
    return new + await scene.bodies(naming.retry_topic(piece.group), 1)


async def _when_committed(scene: Scene, piece: WaitingPiece) -> list[str]:
    for sent in piece.sent:
        _, offset = decode_message_id(sent.msg_id)
        header = EndTransactionHeader(
            producer_group=piece.group,
            tran_state_table_offset=sent.queue_offset,
            commit_log_offset=offset,
            commit_or_rollback=TRANSACTION_COMMIT,
        )
        answer = await scene.ask(RequestCode.END_TRANSACTION, header)
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST), answer.remark
    piece.sent = []
    return await _in_topic(scene, piece)


async def _from_offset(scene: Scene, piece: WaitingPiece) -> list[str]:
    """Return what a consumer gets that begins with the first message if the group has no offset."""
    header = QueryConsumerOffsetHeader(
        consumer_group=piece.group, topic=piece.topic, queue_id=QUEUES - 1
    )
    answer = await scene.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
    is_known = answer.code == ResponseCode.SUCCESS
    offset = answer.header(OffsetHeader).offset if is_known else 0
    return [each.body.decode() for each in await scene.records(piece.topic, QUEUES - 1, offset)]


def _delay(pace: Pace) -> float:
    return pace.delay


def _always(_: Pace) -> float:
    return inf


WAITING_PIECES: tuple[Piece, ...] = (
    WaitingPiece("messages with a delay level", "Delayed", _delayed, _in_topic, _OF_TOPIC, _delay),
    WaitingPiece("timer messages", "Timed", _timed, _in_topic, _OF_TOPIC, _delay),
    WaitingPiece("half messages", "Prepared", _prepared, _when_committed, _OF_TOPIC, _always),
    WaitingPiece(
        "messages sent back to the group",
        "SentBack",
        _sent_back,
        _in_retry_topic,
        _OF_GROUP,
        _delay,
    ),
    WaitingPiece(
        "committed offsets", "Committed", _committed, _from_offset, _OF_BOTH, _always, _LAST_WAITS
    ),
)
