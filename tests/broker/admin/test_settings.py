from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.remoting.codes import RequestCode, ResponseCode
from mqlake.store.settings import parse_properties
from tests.broker.admin.asking import done, refused
from tests.broker.running import running, to

GET, UPDATE = RequestCode.GET_BROKER_CONFIG, RequestCode.UPDATE_BROKER_CONFIG


def test_settings_are_shown_under_their_names(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path, fileReservedTime=5) as broker:
            found = parse_properties(bytes((await done(broker, GET)).body).decode())
            assert found["brokerName"] == "broker-a"
            assert found["fileReservedTime"] == "5"
            assert found["flushDiskType"] == "ASYNC_FLUSH"
            assert found["autoCreateTopicEnable"] == "true"
            assert found["useTLS"] == "false"

    asyncio.run(check())


def test_a_change_holds_at_once_in_all_parts(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await done(broker, UPDATE, body=b"autoCreateTopicEnable=false\nfileReservedTime=9\n")
            answer = await broker.send(to("New"))
            assert answer.code == ResponseCode.TOPIC_NOT_EXIST
            assert broker.parts.store.core.settings.file_reserved_time == 9
            shown = parse_properties(bytes((await done(broker, GET)).body).decode())
            assert shown["fileReservedTime"] == "9"

    asyncio.run(check())


def test_names_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await done(broker, UPDATE, body=b"noSuchSetting=1")

    asyncio.run(check())


@pytest.mark.parametrize(
    ("body", "code", "match"),
    [
        (b"listenPort=1", ResponseCode.NO_PERMISSION, "at a start only"),
        (b"fileReservedTime=soon", ResponseCode.INVALID_PARAMETER, "fileReservedTime"),
    ],
)
def test_a_wrong_change_changes_nothing(tmp_path: Path, body: bytes, code: int, match: str) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            before = (await done(broker, GET)).body
            both = b"autoCreateTopicEnable=false\n" + body
            assert await refused(broker, UPDATE, body=both, match=match) == code
            assert bytes((await done(broker, GET)).body) == bytes(before)

    asyncio.run(check())
