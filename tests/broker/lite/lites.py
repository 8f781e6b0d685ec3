"""A broker with lite topics, and clients of it, over the wire."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.formats.record import Record
from mqlake.protocol.bodies.lite import (
    LiteOffsetOption,
    LiteSubscriptionChange,
    LiteSubscriptionChanges,
)
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.lite import PopLiteAnswerHeader, PopLiteHeader
from mqlake.protocol.headers.pop import AckHeader, ChangeInvisibleTimeHeader
from tests.broker.answered_records import answered_records
from tests.broker.running import Running, running, to

TOPIC, GROUP = "Sessions", "agents"


def subscription_change(
    action: str, client_id: str, group: str, *lites: str, option: LiteOffsetOption | None = None
) -> bytes:
    """Return the body of a change of a client's subscriptions to lite topics."""
    change = LiteSubscriptionChange(action, client_id, group, TOPIC, list(lites), option, 1)
    return encode_body(LiteSubscriptionChanges([change]))


def pop_header(
    client_id: str, group: str, now: int, *, count: int = 32, poll: int, invisible: int
) -> PopLiteHeader:
    """Return the header of a pop; times are in milliseconds."""
    return PopLiteHeader(
        client_id=client_id,
        consumer_group=group,
        topic=TOPIC,
        max_msg_num=count,
        invisible_time=invisible,
        poll_time=poll,
        born_time=now,
    )


def ack_header(group: str, record: Record, receipt: str) -> AckHeader:
    """Return the header of an acknowledgement of a popped message."""
    return AckHeader(
        consumer_group=group,
        topic=TOPIC,
        queue_id=0,
        extra_info=receipt,
        offset=int(record.properties["INNER_MULTI_QUEUE_OFFSET"]),
        lite_topic=record.properties["__LITE_TOPIC"],
    )


class LiteClient:
    """A consumer of lite topics."""

    def __init__(self, broker: Running, client_id: str = "c1", group: str = GROUP) -> None:
        self.broker, self.client_id, self.group = broker, client_id, group

    async def change(
        self, action: str, *lites: str, option: LiteOffsetOption | None = None
    ) -> Command:
        body = subscription_change(action, self.client_id, self.group, *lites, option=option)
        return await self.broker.ask(RequestCode.LITE_SUBSCRIPTION_CTL, body=body)

    async def pop(self, count: int = 32, poll: int = 0, invisible: int = 60_000) -> Command:
        now = self.broker.state.store.clock.milliseconds()
        header = pop_header(
            self.client_id, self.group, now, count=count, poll=poll, invisible=invisible
        )
        return await self.broker.ask(RequestCode.POP_LITE_MESSAGE, header)

    async def bodies(self, count: int = 32, invisible: int = 60_000) -> list[str]:
        return [record.body.decode() for record, _ in popped(await self.pop(count, 0, invisible))]

    async def ack(self, record: Record, receipt: str) -> Command:
        header = ack_header(self.group, record, receipt)
        return await self.broker.ask(RequestCode.ACK_MESSAGE, header)

    async def change_time(self, record: Record, receipt: str, invisible: int) -> Command:
        header = ChangeInvisibleTimeHeader(
            consumer_group=self.group,
            topic=TOPIC,
            queue_id=0,
            extra_info=receipt,
            offset=int(record.properties["INNER_MULTI_QUEUE_OFFSET"]),
            invisible_time=invisible,
            lite_topic=record.properties["__LITE_TOPIC"],
        )
        return await self.broker.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)


def popped(answer: Command) -> list[tuple[Record, str]]:
    """Return the messages of a pop, and their receipts."""
    header = answer.header(PopLiteAnswerHeader)
    found = list[tuple[Record, str]]()
    for record in answered_records(bytes(answer.body)):
        offset = record.properties["INNER_MULTI_QUEUE_OFFSET"]
        receipt = f"0 {header.pop_time} {header.invisible_time} {header.revive_qid} 0 b 0 {offset}"
        found.append((record, receipt))
    return found


@asynccontextmanager
async def lite_broker(path: Path, minutes: int = 60) -> AsyncGenerator[Running]:
    """Run a broker with a group and a parent topic; its lite topics expire after `minutes`."""
    async with running(path, enableLmq=True) as broker:
        attributes = {"message.type": "LITE", "lite.topic.expiration": str(minutes)}
        broker.state.topics.put(Topic(TOPIC, attributes=attributes))
        make_group(broker, GROUP)
        yield broker


def make_group(broker: Running, name: str, **attributes: str) -> None:
    found = {"lite.bind.topic": TOPIC, **{k.replace("_", "."): v for k, v in attributes.items()}}
    broker.state.groups.put(SubscriptionGroup(name, attributes=found))


async def send(broker: Running, lite: str, body: str) -> Command:
    properties = f"__LITE_TOPIC\x01{lite}\x02"
    answer = await broker.send(to(TOPIC, properties=properties), body.encode())
    broker.state.store.reads.catch_up()
    return answer
