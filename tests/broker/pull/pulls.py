"""Pulls of a broker that runs in a test."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from mqlake.broker.pull.requests import PullRequests
from mqlake.formats import record
from mqlake.formats.record import Record
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND, PullAnswerHeader, PullHeader
from mqlake.store.append.message import Message
from tests.broker.consuming import Consumer
from tests.broker.running import Running

GROUP = "readers"


class Pulled(NamedTuple):
    """What a pull was answered."""

    code: int
    remark: str
    records: list[Record]
    offsets: PullAnswerHeader

    @property
    def bodies(self) -> list[bytes]:
        return [one.body for one in self.records]


def pulled(answer: Command) -> Pulled:
    """Return what an answer says."""
    records: list[Record] = []
    data = bytes(answer.body)
    while data:
        records.append(record.decode(data))
        data = data[records[-1].size :]
    header = answer.header(PullAnswerHeader) if answer.fields else PullAnswerHeader()
    return Pulled(answer.code, answer.remark or "", records, header)


def pull_header(offset: int = 0, **fields: Any) -> PullHeader:
    """Return the header of a pull that states its subscription, and does not wait."""
    known: dict[str, Any] = {
        "consumer_group": GROUP,
        "topic": "Orders",
        "queue_id": 0,
        "queue_offset": offset,
        "max_msg_nums": 32,
        "sys_flag": HAS_SUBSCRIPTION,
        "commit_offset": 0,
        "suspend_timeout_millis": 0,
        "subscription": "*",
        "sub_version": 1,
    }
    return PullHeader(**(known | fields))


async def pull(by: Running | Consumer, offset: int = 0, **fields: Any) -> Pulled:
    """Pull from an offset on."""
    return pulled(await by.ask(RequestCode.PULL_MESSAGE, pull_header(offset, **fields)))


def start_pull(
    by: Running | Consumer, offset: int, milliseconds: int, **fields: Any
) -> asyncio.Task[Pulled]:
    """Begin a pull that may wait so long."""
    flags = HAS_SUBSCRIPTION | MAY_SUSPEND
    wait = {"suspend_timeout_millis": milliseconds, "sys_flag": flags}
    return asyncio.create_task(pull(by, offset, **(wait | fields)))


def polls(broker: Running) -> Any:
    """Return the pulls that wait, a `LongPolls`."""
    family: Any = next(each for each in broker.broker.families if isinstance(each, PullRequests))
    return family._waiting


async def fill(broker: Running, count: int, start: int = 0, **fields: Any) -> None:
    """Put messages numbered from `start` into queue 0; tags turn between t0, t1 and t2."""
    broker.state.topics.make("Orders", 4)
    messages = [
        Message("Orders", b"%d" % number, **({"tags": f"t{number % 3}"} | fields))
        for number in range(start, start + count)
    ]
    await broker.state.store.put_many(messages)
    broker.state.store.core.tick()


def numbers(start: int, end: int, step: int = 1) -> list[bytes]:
    """Return the bodies of messages that `fill` puts."""
    return [b"%d" % number for number in range(start, end, step)]
