"""Administrative questions to a broker that runs in a test."""

from __future__ import annotations

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.header import Header
from mqlake.protocol.headers.admin import CreateTopicHeader
from tests.broker.running import Running


async def done(
    broker: Running, code: RequestCode, header: Header | None = None, body: bytes = b""
) -> Command:
    """Return the response to a request that succeeds."""
    answer = await broker.ask(code, header, body)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return answer


async def refused(
    broker: Running,
    code: RequestCode,
    header: Header | None = None,
    body: bytes = b"",
    *,
    match: str,
) -> int:
    """Return the code of the response to a request that fails with a remark."""
    answer = await broker.ask(code, header, body)
    if answer.code == ResponseCode.SUCCESS:
        pytest.fail("not refused")
    assert match in (answer.remark or "")
    return answer.code


def wanted(name: str, **fields: object) -> CreateTopicHeader:
    """Return the header that makes a topic."""
    known: dict[str, object] = {
        "read_queue_nums": 2,
        "write_queue_nums": 2,
        "perm": 6,
        "topic_filter_type": "SINGLE_TAG",
        "default_topic": "TBW102",
    }
    return CreateTopicHeader(topic=name, **(known | fields))  # pyright: ignore[reportArgumentType]
