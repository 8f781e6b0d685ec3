"""Queries by key, and what they answer."""

from __future__ import annotations

from typing import Any

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.query import (
    QueryMessageHeader,
)
from tests.broker.answered_records import answered_records
from tests.broker.running import Running

LAST = (1 << 63) - 1


def bodies(answer: Command) -> list[bytes]:
    return [each.body for each in answered_records(bytes(answer.body))]


async def query(broker: Running, key: str, most: int = 32, **fields: Any) -> Command:
    known: dict[str, Any] = {"begin_timestamp": 0, "end_timestamp": LAST, "topic": "Orders"}
    header = QueryMessageHeader(key=key, max_num=most, **(known | fields))
    return await broker.ask(RequestCode.QUERY_MESSAGE, header)
