"""A consumer that pops, by hand."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple

from mqlake.formats.record import Record
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.handles.receipts import Receipt
from mqlake.protocol.headers.pop import (
    AckHeader,
    ChangeInvisibleTimeHeader,
    PollingInfoAnswerHeader,
    PollingInfoHeader,
    PopAnswerHeader,
    PopHeader,
)
from mqlake.protocol.retry_topics import mark_of, marked
from tests import simulated
from tests.broker.answered_records import answered_records
from tests.broker.running import PATIENCE, Running, to
from tests.until import until

TOPIC, GROUP, RETRY = "Orders", "group", "%RETRY%group_Orders"

LONG = 2 * int(PATIENCE * 1000)
"""Milliseconds that a pop waits which must be answered before they are over."""


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a test in simulated time."""
    simulated.run(test)


class Popped(NamedTuple):
    """A message, and the receipt that a client makes for it."""

    record: Record
    receipt: str
    times: int

    @property
    def body(self) -> str:
        return self.record.body.decode()


async def send(broker: Running, *bodies: str, queue_id: int = 0, properties: str = "") -> None:
    """Send messages to the topic that is popped."""
    for body in bodies:
        answer = await broker.send(
            to(TOPIC, queue_id=queue_id, properties=properties), body.encode()
        )
        assert answer.code == ResponseCode.SUCCESS
    broker.state.store.core.tick()


def header(**fields: object) -> PopHeader:
    known: dict[str, object] = {
        "consumer_group": GROUP,
        "topic": TOPIC,
        "queue_id": -1,
        "max_msg_nums": 32,
        "invisible_time": 60_000,
        "poll_time": 0,
        "init_mode": 0,
    }
    return PopHeader(**(known | fields))  # pyright: ignore[reportArgumentType]


async def pop(broker: Running, **fields: object) -> list[Popped]:
    """Pop messages; return them, none where there is none."""
    asked = request(RequestCode.POP_MESSAGE, header(**fields))
    answer = await broker.client.request(broker.address, asked, PATIENCE)
    assert answer.code in (ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT), answer.remark
    return read(answer)


def read(answer: Command) -> list[Popped]:
    """Return what an answer has, with the receipts that stock clients make."""
    found = answer.header(PopAnswerHeader)
    starts = _parse(found.start_offset_info)
    offsets = _parse(found.msg_offset_info)
    counts = _parse(found.order_count_info)
    popped: list[Popped] = []
    seen: dict[str, int] = {}
    for message in answered_records(bytes(answer.body)):
        receipt = message.properties.get("POP_CK")
        mark = mark_of(message.topic) if receipt is None else receipt.split(" ")[4]
        key = f"{mark}@{message.queue_id}"
        number = seen[key] = seen.get(key, -1) + 1
        assert int(offsets[key].split(",")[number]) == message.queue_offset
        made = Receipt(
            int(starts[key]),
            found.pop_time,
            found.invisible_time,
            found.revive_qid,
            mark,
            "broker-a",
            message.queue_id,
            message.queue_offset,
        ).text
        assert receipt in (None, made)
        by_offset = f"{mark}@qo{message.queue_id}%{message.queue_offset}"
        popped.append(Popped(message, made, int(counts.get(by_offset, counts.get(key, "0")))))
    return popped


def _parse(info: str | None) -> dict[str, str]:
    parts = [part.split(" ") for part in (info or "").split(";") if part]
    found = {f"{mark}@{key}": value for mark, key, value in parts}
    assert len(found) == len(parts), "stock clients refuse a queue that comes twice"
    return found


def receipt_fields(topic: str, group: str, popped: Popped) -> dict[str, Any]:
    """Return the header fields that say which message of a group's pop a request is about."""
    mark = (*popped.receipt.split(" ")[4:5], "0")[0]  # Tests make malformed receipts, too.
    return {
        "consumer_group": group,
        "topic": marked(mark, topic, group),
        "queue_id": popped.record.queue_id,
        "extra_info": popped.receipt,
        "offset": popped.record.queue_offset,
    }


async def until_waiting(broker: Running, count: int, **fields: object) -> None:
    """Return once so many pops and notifications wait at the broker, by default of all queues."""
    known: dict[str, object] = {"consumer_group": GROUP, "topic": TOPIC, "queue_id": -1}
    asked = PollingInfoHeader(**(known | fields))  # pyright: ignore[reportArgumentType]

    async def wait() -> bool:
        answer = await broker.ask(RequestCode.POLLING_INFO, asked)
        return answer.header(PollingInfoAnswerHeader).polling_num == count

    await until(wait)


async def acknowledge(broker: Running, *popped: Popped) -> None:
    """Acknowledge messages one by one."""
    for each in popped:
        answer = await broker.ask(
            RequestCode.ACK_MESSAGE,
            AckHeader(**receipt_fields(TOPIC, GROUP, each)),
        )
        assert answer.code == ResponseCode.SUCCESS, answer.remark


async def change(
    broker: Running, popped: Popped, invisible_time: int, *, suspend: bool | None = None
) -> Command:
    """Let a message come again at another time."""
    return await broker.ask(
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        ChangeInvisibleTimeHeader(
            **receipt_fields(TOPIC, GROUP, popped), invisible_time=invisible_time, suspend=suspend
        ),
    )


def bodies(popped: Sequence[Popped]) -> list[str]:
    """Return what the messages say, sorted."""
    return sorted(each.body for each in popped)
