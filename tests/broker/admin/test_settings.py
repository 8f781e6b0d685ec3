from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.settings import RESTART, BrokerSettings, make_broker_settings
from mqlake.errors import MqlakeError, StoreError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import ConfigVersionHeader
from mqlake.store.bounds import secrets
from mqlake.store.config.properties_file import PropertiesFile
from mqlake.store.settings import parse_properties
from tests.broker.admin.asking import done, refused
from tests.broker.running import PATIENCE, SMALL, Running, running, to
from tests.hostile_settings import hostile
from tests.until import until

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
            assert broker.state.store.core.settings.file_reserved_time == 9
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
        (b"listenPort=1", ResponseCode.NO_PERMISSION, "at a restart only"),
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


async def version(broker: Running) -> int:
    """Return how often settings were changed."""
    header = (await done(broker, GET)).header(ConfigVersionHeader)
    return json.loads(header.version)["counter"]


def test_changes_are_kept_in_the_store(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            before = broker.runtime.settings
            await done(broker, UPDATE, body=b"maxMessageSize=5000\ntraceOn=false\n")
            await done(broker, UPDATE, body=b"traceOn=true")
            assert await version(broker) == 2
            assert before.max_message_size == 4 << 20, "a snapshot never changes"
            assert broker.broker.settings is broker.runtime.settings
            assert broker.state.store.core.settings is broker.runtime.settings
        kept = (tmp_path / "config" / "broker.properties").read_text()
        assert kept.endswith("\nmaxMessageSize=5000\ntraceOn=true\n")

    asyncio.run(check())


def test_changes_are_written_to_the_file_that_was_given(tmp_path: Path) -> None:
    config = tmp_path / "broker.conf"
    config.write_text("# ours\nbrokerName=broker-a\nfileReservedTime = 48\nunknown=1\n")

    async def check() -> None:
        async with running(tmp_path / "store", config=config) as broker:
            await done(broker, UPDATE, body=b"fileReservedTime=9\nregionId=here")

    asyncio.run(check())
    assert config.read_text() == (
        "# ours\nbrokerName=broker-a\nfileReservedTime=9\nunknown=1\nregionId=here\n"
    )
    assert not (tmp_path / "store" / "config" / "broker.properties").exists()


def test_a_change_that_cannot_be_kept_is_an_error_and_not_in_effect(tmp_path: Path) -> None:
    config = tmp_path / "broker.conf"
    config.write_text("brokerName=broker-a\n")

    async def check() -> None:
        async with running(tmp_path / "store", config=config) as broker:
            before = broker.runtime.settings
            config.unlink()
            match = "unchanged, because they could not be stored: "
            code = await refused(broker, UPDATE, body=b"fileReservedTime=9", match=match)
            assert code == ResponseCode.SYSTEM_ERROR
            assert broker.runtime.settings is before
            assert await version(broker) == 0
            config.write_text("brokerName=broker-a\n")
            await done(broker, UPDATE, body=b"fileReservedTime=9")
            assert broker.runtime.settings.file_reserved_time == 9

    asyncio.run(check())


def test_changes_that_come_at_once_are_all_made(tmp_path: Path) -> None:
    names = ("maxTopicNums", "maxClientNums", "maxLockNums", "maxAnswerEntries")

    async def check() -> None:
        async with running(tmp_path) as broker:
            bodies = [f"{name}={1000 + turn}".encode() for turn in range(5) for name in names]
            await asyncio.gather(*(done(broker, UPDATE, body=body) for body in bodies))
            assert await version(broker) == len(bodies)
            shown = parse_properties(bytes((await done(broker, GET)).body).decode())
            kept = parse_properties((tmp_path / "config" / "broker.properties").read_text())
            assert kept == {name: shown[name] for name in names}

    asyncio.run(check())


def test_a_slow_disk_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_free, usual = threading.Event(), PropertiesFile.change

    def change(*arguments: Any) -> None:
        is_free.wait(PATIENCE)
        usual(*arguments)

    monkeypatch.setattr(PropertiesFile, "change", change)

    async def check() -> None:
        async with running(tmp_path) as broker:
            changing = asyncio.create_task(done(broker, UPDATE, body=b"traceOn=false"))
            answer = await broker.send(to("Orders"))
            assert (answer.code, answer.fields["TRACE_ON"]) == (ResponseCode.SUCCESS, "true")
            assert not changing.done()
            is_free.set()
            await changing
            assert (await broker.send(to("Orders"))).fields["TRACE_ON"] == "false"

    asyncio.run(check())


def test_a_change_whose_client_is_gone_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_free, usual = threading.Event(), PropertiesFile.change
    started = threading.Event()

    def change(*arguments: Any) -> None:
        started.set()
        is_free.wait(PATIENCE)
        usual(*arguments)

    monkeypatch.setattr(PropertiesFile, "change", change)

    async def check() -> None:
        async with running(tmp_path) as broker:
            other = Running(broker.broker)
            changing = asyncio.create_task(done(other, UPDATE, body=b"traceOn=false"))
            await until(started.is_set)
            await other.client.close()
            with pytest.raises(MqlakeError):
                await changing
            assert broker.broker.settings.trace_on
            asyncio.get_running_loop().call_later(0.3, is_free.set)
        assert not broker.broker.settings.trace_on, "before the store was closed"

    asyncio.run(check())
    kept = parse_properties((tmp_path / "config" / "broker.properties").read_text())
    assert kept == {"traceOn": "false"}


def test_nothing_changes_once_a_broker_stops(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            for function in broker.runtime.on_stop:
                if (waits := function()) is not None:
                    await waits
            code = await refused(
                broker, UPDATE, body=b"traceOn=false", match="the broker is stopping"
            )
            assert code == ResponseCode.SERVICE_NOT_AVAILABLE

    asyncio.run(check())


def test_too_many_settings_are_refused(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            body = b"traceOn=false\n" * 10_000
            await refused(broker, UPDATE, body=body, match="bytes; the maximum is 32768")
            assert broker.runtime.settings.trace_on

    asyncio.run(check())


def test_hours_that_are_none_are_refused_and_no_service_is_lost(tmp_path: Path) -> None:
    async def check() -> None:
        settings = {"cleanResourceInterval": 10, "messageDelayLevel": "1s 2s"}
        async with running(tmp_path, **settings) as broker:
            text = r"setting deleteWhen: 'abc' is not allowed: use hours of the day"
            code = await refused(broker, UPDATE, body=b"deleteWhen=abc", match=text)
            assert code == ResponseCode.INVALID_PARAMETER
            # What a service was to deliver and to keep is delivered and kept.
            core = broker.state.store.core
            retention = next(service for service in core.services if service.name == "retention")
            looked = retention.last
            await until(lambda: retention.last > looked)
            await broker.send(to("Later", properties="DELAY\x011\x02"), b"late")
            await until(lambda: bool(broker.records("Later")))
            await until((tmp_path / "config" / "topics.json").exists)
            assert [service.name for service in core.services if service.failures] == []

    asyncio.run(check())
    assert not (tmp_path / "abort").exists()


def test_every_value_is_refused_or_a_broker_works_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # msgspec evaluates the annotations of all settings in each call, and there are thousands here.
    monkeypatch.setattr(msgspec.structs, "fields", cache(msgspec.structs.fields))
    fields = {f.name: f.encode_name for f in msgspec.structs.fields(BrokerSettings)}
    allowed = {encoded: works(name, encoded) for name, encoded in fields.items()}
    rounds = max(len(values) for values in allowed.values())
    assert all(allowed.values())
    # In each round every setting has the next value of those that are allowed.
    given = [
        {name: values[number % len(values)] for name, values in allowed.items()}
        for number in range(rounds)
    ]

    async def use(broker: Running) -> None:
        await broker.send(to("Orders"))
        await done(broker, GET)
        await done(broker, RequestCode.GET_BROKER_RUNTIME_INFO)
        core, repeating = broker.state.store.core, broker.runtime.repeating
        assert [s.failure for s in (*core.services, *repeating) if s.failures] == []
        assert core.health.failure is None

    async def change() -> None:
        async with running(tmp_path / "changed", **GIVEN) as broker:
            for values in given:
                lines = [f"{n}={text(v)}" for n, v in values.items() if n not in RESTART]
                await done(broker, UPDATE, body="\n".join(lines).encode())
                await asyncio.sleep(0.06)
                await use(broker)

    async def start(number: int) -> None:
        async with running(tmp_path / str(number), **{**given[number], **GIVEN}) as broker:
            await use(broker)

    asyncio.run(change())
    for number in range(0, rounds, 5):
        asyncio.run(start(number))


def test_a_time_of_the_first_send_in_the_future_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        async with running(tmp_path, startAcceptSendRequestTimeStamp=4_000_000_000_000) as broker:
            answer = await broker.send(to("Orders"))
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert answer.remark is not None
            assert "broker unable to service, until 2096-10-0" in answer.remark
            await done(broker, UPDATE, body=b"startAcceptSendRequestTimeStamp=0")
            assert (await broker.send(to("Orders"))).code == ResponseCode.SUCCESS

    asyncio.run(check())
    assert "no message is accepted before 2096-10-0" in caplog.text


GIVEN = {
    "brokerIP1": "127.0.0.1",
    "bindAddress": "127.0.0.1",
    "namesrvAddr": "",
    "brokerHeartbeatInterval": 1000,
    "brokerNotActiveTimeoutMillis": 10_000,
    "authenticationEnabled": False,
    "authorizationEnabled": False,
    "aclEnable": False,
    **SMALL,
}
"""What a test has no choice of: where it listens, how much memory it takes, and two times of which
the second one must be longer.
"""


_FIXED = (
    "storePathRootDir",
    "storePathCommitLog",
    "listenPort",
    "namesrvAddr",
    "metricsExporterType",
    "authenticationWhitelist",
    "authorizationWhitelist",
)


def works(name: str, encoded: str) -> list[object]:
    """Return the hostile values of a setting that are not refused."""
    is_file = encoded.startswith("tls.")  # It must exist: tests/tls.
    is_limit = encoded.endswith("PerAddress")  # It refuses what this client asks: test_quotas.py.
    if encoded in _FIXED or is_file or is_limit or name in secrets(BrokerSettings):
        return [getattr(BrokerSettings(), name)]
    found: list[object] = []
    for value in hostile(BrokerSettings, name):
        with contextlib.suppress(StoreError):
            found.append(getattr(make_broker_settings({encoded: value}), name))
    return [*dict.fromkeys(found)]


def text(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return str(value).lower() if isinstance(value, bool) else str(value)
