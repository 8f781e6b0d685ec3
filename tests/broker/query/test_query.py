"""Messages by key and by id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.query import (
    QueryMessageAnswerHeader,
    ViewMessageHeader,
)
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from tests import simulated
from tests.broker.query.queries import bodies, query
from tests.broker.running import running


def test_by_key(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            store, puts = broker.state.store, list[PutResult]()
            for number in range(100):
                message = Message(
                    "Orders", b"%d" % number, keys=f"k{number % 10} all", tags=f"t{number % 4}"
                )
                puts.append(await store.put(message))
            answer = await query(broker, "k3")
            assert bodies(answer) == [b"%d" % number for number in range(3, 100, 10)]
            assert answer.remark is None
            told = answer.header(QueryMessageAnswerHeader)
            assert told.index_last_update_phyoffset == puts[-1].physical_offset

            answer = await query(broker, "all", 5)
            assert bodies(answer) == [b"95", b"96", b"97", b"98", b"99"]
            assert "only the newest 5 messages" in (answer.remark or "")
            assert len(bodies(await query(broker, "all", 1000))) == 64, "maxMsgsNumBatch"
            assert len(bodies(await query(broker, "all", 1, is_unique_key=True))) == 32
            assert len(bodies(await query(broker, "t1", index_type="T"))) == 25

            missing: list[dict[str, Any]] = [
                {"key": "nobody"},
                {"key": "k3", "topic": "Others"},
                {"key": "k3", "end_timestamp": 1},
            ]
            for wanted in missing:
                answer = await query(broker, **wanted)
                assert answer.code == ResponseCode.QUERY_NOT_FOUND
                assert not answer.body

    simulated.run(main())


def test_by_id(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await broker.state.store.put(Message("Orders", b"one"))
            put = await broker.state.store.put(Message("Orders", b"two", keys="k"))
            code = RequestCode.VIEW_MESSAGE_BY_ID
            answer = await broker.ask(code, ViewMessageHeader(offset=put.physical_offset))
            assert bodies(answer) == [b"two"]
            for offset in (-1, 1, put.physical_offset + 1, 1 << 40):
                answer = await broker.ask(code, ViewMessageHeader(offset=offset))
                assert answer.code == ResponseCode.SYSTEM_ERROR
                assert str(offset) in (answer.remark or "")

    simulated.run(main())


@pytest.mark.parametrize("topic", ["../../x", "", "a/b"])
def test_topics_that_are_no_name(tmp_path: Path, topic: str) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            assert (await query(broker, "k", topic=topic)).code == ResponseCode.SYSTEM_ERROR

    simulated.run(main())


def test_an_answer_that_no_client_reads_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked; RocketMQ's clients close a connection over which a longer frame comes."""
    monkeypatch.setattr("mqlake.remoting.connection.LONGEST_ANSWER", 1000)

    async def main() -> None:
        async with running(tmp_path) as broker:
            put = await broker.state.store.put(Message("Orders", bytes(1000)))
            for offset in (put.physical_offset, 1):
                header = ViewMessageHeader(offset=offset)
                answer = await broker.ask(RequestCode.VIEW_MESSAGE_BY_ID, header)
                assert answer.code == ResponseCode.SYSTEM_ERROR
                assert not answer.body
                if offset == put.physical_offset:
                    assert "clients read at most 1000: ask for less" in (answer.remark or "")

    simulated.run(main())
