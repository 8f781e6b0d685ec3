"""With which settings a broker starts again after some were changed while it ran."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from mqlake.broker.settings import BrokerSettings
from mqlake.errors import StoreError
from mqlake.programs.broker import starting_settings
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.config.properties_file import PropertiesFile
from mqlake.store.settings import parse_properties
from mqlake.testing import broker as running_broker
from tests.broker.running import PATIENCE
from tests.programs.processes import BrokerProcess


def kept(path: Path, text: str) -> dict[str, object]:
    """Write what was changed on a store; return the settings that name the store."""
    (path / "config").mkdir(parents=True)
    (path / "config" / "broker.properties").write_text(text)
    return {"storePathRootDir": str(path)}


def test_what_was_changed_counts_less_than_what_is_given(tmp_path: Path) -> None:
    given = kept(tmp_path, "maxMessageSize=5\nfileReservedTime=6\nmaxTopicNums=7\n")
    found = starting_settings({**given, "fileReservedTime": "60", "max_topic_nums": 70})
    assert found.max_message_size == 5
    assert (found.file_reserved_time, found.max_topic_nums) == (60, 70)


def test_a_setting_has_two_names(tmp_path: Path) -> None:
    given = kept(tmp_path, "max_message_size=5\nfileReservedTime=6\nfile_reserved_time=7\n")
    found = starting_settings(given)
    assert (found.max_message_size, found.file_reserved_time) == (5, 7)
    # As a running broker changes them.
    values = {"maxMessageSize": "8", "fileReservedTime": "9"}
    PropertiesFile.of_store(LocalOwnedDirectory(tmp_path)).change(BrokerSettings, values)
    found = starting_settings(given)
    assert (found.max_message_size, found.file_reserved_time) == (8, 9)
    assert starting_settings({**given, "file_reserved_time": 10}).file_reserved_time == 10


def test_a_store_without_changes(tmp_path: Path) -> None:
    found = starting_settings({"storePathRootDir": str(tmp_path / "new"), "brokerName": "b"})
    assert found.max_message_size == BrokerSettings().max_message_size


def test_only_what_may_change_while_a_broker_runs_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = kept(tmp_path, "storePathRootDir=/elsewhere\nlistenPort=5\nx=1\ntraceOn=false\n")
    found = starting_settings(given)
    assert found.store_path == tmp_path
    assert (found.listen_port, found.trace_on) == (10911, False)
    assert "not read from this file: listenPort, storePathRootDir, x" in caplog.text


def test_a_wrong_value_names_the_file(tmp_path: Path) -> None:
    given = kept(tmp_path, "maxMessageSize=soon\n")
    with pytest.raises(StoreError, match=r"config/broker\.properties: setting maxMessageSize"):
        starting_settings(given)


async def ask(address: str, code: RequestCode, body: bytes = b"") -> bytes:
    client = RemotingClient(connect_timeout=PATIENCE)
    try:
        answer = await client.request(address, request(code, None, body), PATIENCE)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return bytes(answer.body)
    finally:
        await client.close()


@pytest.mark.parametrize("is_given", [False, True])
def test_a_change_survives_a_kill(tmp_path: Path, is_given: bool) -> None:
    config = tmp_path / "broker.conf"
    config.write_text("# ours\nfileReservedTime=48\n")
    process = BrokerProcess(
        tmp_path / "store", tmp_path / "log", {}, config=config if is_given else None
    )
    try:
        body = b"fileReservedTime=9\nmaxMessageSize=5000\n"
        asyncio.run(ask(process.address, RequestCode.UPDATE_BROKER_CONFIG, body))
        process.process.kill()
        process.process.wait()
        process.start()
        shown = asyncio.run(ask(process.address, RequestCode.GET_BROKER_CONFIG))
        found = parse_properties(shown.decode())
        assert (found["fileReservedTime"], found["maxMessageSize"]) == ("9", "5000")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.process.kill()
        process.process.wait()
    lines = config.read_text().splitlines()
    assert lines[:2] == ["# ours", "fileReservedTime=9" if is_given else "fileReservedTime=48"]


def test_a_broker_of_a_test_finds_them_too(tmp_path: Path) -> None:
    for expected in (72, 9):
        with running_broker(tmp_path) as broker:
            shown = asyncio.run(ask(broker.address, RequestCode.GET_BROKER_CONFIG))
            assert parse_properties(shown.decode())["fileReservedTime"] == str(expected)
            change = RequestCode.UPDATE_BROKER_CONFIG
            asyncio.run(ask(broker.address, change, b"fileReservedTime=9"))
