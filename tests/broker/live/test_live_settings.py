"""Every setting that takes effect at once does; every other one is refused while a broker runs."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import msgspec
import pytest

from mqlake.broker.settings import NOW, RESTART, BrokerSettings
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.store.bounds import effects
from mqlake.store.live_settings import LiveSettings
from mqlake.store.settings import parse_properties, texts
from tests.broker.admin.asking import done, refused
from tests.broker.live import (
    clients,
    delivery,
    lite,
    names,
    pops,
    pulls,
    quotas,
    replication,
    sends,
    static_topics,
    store,
    topics,
)
from tests.broker.live.observing import OBSERVATIONS, Patience
from tests.broker.running import running

MODULES = (
    clients,
    delivery,
    lite,
    names,
    pops,
    pulls,
    quotas,
    replication,
    sends,
    static_topics,
    store,
    topics,
)
SHORT = 1.5
"""Seconds for which something is waited for that does not come."""
TOGETHER = 8
"""Brokers that wait at the same time; with many more, a slow loop would be why nothing comes."""


def test_every_setting_declares_when_it_takes_effect() -> None:
    fields = {field.name for field in msgspec.structs.fields(BrokerSettings)}
    assert set(effects(BrokerSettings)) == fields
    assert not NOW & RESTART
    assert {"maxMessageSize", "flushIntervalCommitLog", "deleteWhen"} <= NOW
    assert {"listenPort", "messageDelayLevel", "timerPrecisionMs"} <= RESTART


def test_every_setting_that_takes_effect_at_once_has_an_observation() -> None:
    assert MODULES
    assert NOW - OBSERVATIONS.keys() == set(), "add an observation to tests/broker/live"
    assert OBSERVATIONS.keys() - NOW == set()


async def look(name: str, path: Path) -> None:
    observation = OBSERVATIONS[name]
    async with running(path, **observation.start) as broker:
        await observation.look(broker)


@pytest.mark.parametrize("name", sorted(NOW))
def test_a_change_takes_effect(name: str, tmp_path: Path) -> None:
    asyncio.run(look(name, tmp_path))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.nightly)])
def test_observations_fail_without_the_change(
    every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LiveSettings, "replace", lambda *_: None)
    monkeypatch.setattr(Patience, "seconds", SHORT)

    async def holds(name: str, turn: asyncio.Semaphore) -> bool:
        async with turn:
            try:
                await look(name, tmp_path / name)
            except (AssertionError, TimeoutError, pytest.fail.Exception):
                return False
        return True

    async def holding() -> list[str]:
        names, turn = sorted(NOW)[::every], asyncio.Semaphore(TOGETHER)
        found = await asyncio.gather(*(holds(name, turn) for name in names))
        return [name for name, held in zip(names, found, strict=True) if held]

    assert not asyncio.run(holding())
    gc.collect()  # what they left behind, so that no other test is blamed


def test_settings_that_take_effect_at_a_restart_are_refused(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            before = broker.runtime.settings
            code = RequestCode.UPDATE_BROKER_CONFIG
            shown = parse_properties(
                bytes((await done(broker, RequestCode.GET_BROKER_CONFIG)).body).decode()
            )
            for name, value in texts(before).items():
                assert name in shown
                if name in RESTART:
                    body = f"{name}={value}\nmaxMessageSize=5\n".encode()
                    match = f"{name}: takes effect at a restart only; change it in the broker.conf"
                    answer = await refused(broker, code, body=body, match=match)
                    assert answer == ResponseCode.NO_PERMISSION
            assert broker.runtime.settings is before

    asyncio.run(check())
