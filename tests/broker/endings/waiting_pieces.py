"""The state of messages that wait to be delivered, and of groups that commit offsets.

Each piece has old messages that nobody has consumed before the event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

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
from tests.broker.endings.pieces import Outcome, Piece
from tests.broker.endings.world import QUEUES, World
from tests.broker.running import to

OLD, NEW = ("old0", "old1", "old2"), ("new0", "new1")
_LEVEL, _SECONDS = 5, 60
_ROUNDS = 40

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
        found: returns the old messages that a consumer gets, after the event and some time.
        outcomes: by event.
        sent: what `bring_about` notes for `found`.
    """

    name: str
    topic: str
    bring_about: Callable[[World, WaitingPiece], Awaitable[None]]
    found: Callable[[World, WaitingPiece], Awaitable[set[str]]]
    outcomes: Mapping[str, Outcome]
    sent: list[SendMessageResponseHeader] = field(default_factory=list[SendMessageResponseHeader])

    @property
    def group(self) -> str:
        return f"{self.topic}Group"

    async def begin(self, world: World) -> None:
        self.sent = []
        await world.create(self.topic, self.group)
        await self.bring_about(world, self)
        await world.settle()

    async def check(self, world: World, outcome: Outcome) -> None:
        await world.send(self.topic, *NEW)
        kept = {OLD[-1]} if self.name == OFFSETS else set(OLD)
        expected = {
            Outcome.ENDS: set[str](),
            Outcome.KEPT: kept,
            Outcome.AGAIN: kept,
            Outcome.ANEW: set(OLD),
        }[outcome]
        got = await self.found(world, self)
        for _ in range(_ROUNDS if expected - got else 3):
            await world.later(_SECONDS)
            got |= await self.found(world, self)
            if expected and got >= expected:
                break
        if outcome is Outcome.AGAIN:
            got -= set(OLD) - expected
        assert got == expected, f"{self.name}: {sorted(got)} instead of {sorted(expected)}"
        new = _bodies(world, self.topic)
        assert new >= set(NEW), f"{self.name}: of the new messages, only {sorted(new)} arrive"


def _bodies(world: World, topic: str, queues: int = QUEUES) -> set[str]:
    return {
        record.body.decode()
        for queue_id in range(queues)
        for record in world.broker.records(topic, queue_id)
    }


async def _send(world: World, piece: WaitingPiece, properties: str = "", **fields: int) -> None:
    for body in OLD:
        header = to(piece.topic, queue_id=QUEUES - 1, properties=properties, **fields)
        answer = await world.broker.send(header, body.encode())
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        piece.sent.append(answer.header(SendMessageResponseHeader))
    world.broker.parts.store.core.sync_log()


async def _delayed(world: World, piece: WaitingPiece) -> None:
    await _send(world, piece, f"DELAY\x01{_LEVEL}\x02")


async def _timed(world: World, piece: WaitingPiece) -> None:
    await _send(world, piece, f"TIMER_DELAY_SEC\x01{_SECONDS}\x02")


async def _prepared(world: World, piece: WaitingPiece) -> None:
    properties = f"TRAN_MSG\x01true\x02PGROUP\x01{piece.group}\x02"
    await _send(world, piece, properties, sys_flag=TRANSACTION_PREPARED)


async def _sent_back(world: World, piece: WaitingPiece) -> None:
    await _send(world, piece)
    for sent in piece.sent:
        _, offset = decode_message_id(sent.msg_id)
        header = SendBackHeader(offset=offset, group=piece.group, delay_level=_LEVEL)
        answer = await world.broker.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
    world.broker.parts.store.core.sync_log()


async def _committed(world: World, piece: WaitingPiece) -> None:
    await _send(world, piece)
    header = UpdateConsumerOffsetHeader(
        consumer_group=piece.group,
        topic=piece.topic,
        queue_id=QUEUES - 1,
        commit_offset=len(OLD) - 1,
    )
    answer = await world.broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)
    assert answer.code == ResponseCode.SUCCESS, answer.remark


async def _in_topic(world: World, piece: WaitingPiece) -> set[str]:
    return _bodies(world, piece.topic) & set(OLD)


async def _in_retry_topic(world: World, piece: WaitingPiece) -> set[str]:
    return _bodies(world, naming.retry_topic(piece.group), 1)


async def _when_committed(world: World, piece: WaitingPiece) -> set[str]:
    for sent in piece.sent:
        _, offset = decode_message_id(sent.msg_id)
        header = EndTransactionHeader(
            producer_group=piece.group,
            tran_state_table_offset=sent.queue_offset,
            commit_log_offset=offset,
            commit_or_rollback=TRANSACTION_COMMIT,
        )
        answer = await world.broker.ask(RequestCode.END_TRANSACTION, header)
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST), answer.remark
    world.broker.parts.store.core.tick()
    return await _in_topic(world, piece)


async def _from_offset(world: World, piece: WaitingPiece) -> set[str]:
    """Return what a consumer gets that begins with the first message if the group has no offset."""
    header = QueryConsumerOffsetHeader(
        consumer_group=piece.group, topic=piece.topic, queue_id=QUEUES - 1
    )
    answer = await world.broker.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
    is_known = answer.code == ResponseCode.SUCCESS
    offset = answer.header(OffsetHeader).offset if is_known else 0
    records = world.broker.records(piece.topic, QUEUES - 1)[offset:]
    return {record.body.decode() for record in records} & set(OLD)


OFFSETS = "committed offsets"

WAITING_PIECES: tuple[Piece, ...] = (
    WaitingPiece("messages with a delay level", "Delayed", _delayed, _in_topic, _OF_TOPIC),
    WaitingPiece("timer messages", "Timed", _timed, _in_topic, _OF_TOPIC),
    WaitingPiece("half messages", "Prepared", _prepared, _when_committed, _OF_TOPIC),
    WaitingPiece(
        "messages sent back to the group", "SentBack", _sent_back, _in_retry_topic, _OF_GROUP
    ),
    WaitingPiece(OFFSETS, "Committed", _committed, _from_offset, _OF_BOTH),
)
