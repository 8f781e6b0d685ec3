"""A slave under a controller, and what it believes of a master that a test leads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.settings import make_broker_settings
from mqlake.errors import MqlakeError
from mqlake.formats.epoch_file import Epoch
from mqlake.protocol.replication.auto_switch import (
    Handshake,
    HandshakeAnswer,
    encode_answer,
    encode_handshake,
    encode_head,
    encode_report,
)
from mqlake.replication.auto_switch.group import Group
from mqlake.replication.auto_switch.reception import AutoSwitchReception
from mqlake.store.live_settings import LiveSettings
from mqlake.store.message_store import MessageStore
from mqlake.store.port import Epochs, LogCopying
from tests.broker.running import PATIENCE, SMALL
from tests.replication.slaves import Master, master
from tests.store.replication.test_received_log import SIZE, filled, stream

HANDSHAKE, REPORT = len(encode_handshake(Handshake(2))), len(encode_report(0))
SHARED, DATA = filled(8).log.end, stream(filled(9).log)
FIRST, SECOND = Epoch(1, 0), Epoch(2, SHARED)


async def handshake(one: Master, *epochs: Epoch, end: int = len(DATA)) -> int:
    """Answer a slave's handshake; return what it asks for."""
    await one.reader.readexactly(HANDSHAKE)
    one.writer.write(encode_answer(HandshakeAnswer(end, epochs)))
    return await report(one)


async def report(one: Master) -> int:
    return int.from_bytes((await one.reader.readexactly(REPORT))[4:], "big")


Followed = tuple[str, tuple[Epoch, ...], list[int]]


def followed(
    path: Path,
    lead: Callable[[Master], Awaitable[None]],
    *epochs: Epoch,
    log: bytes,
    beat: int = 5000,
) -> Followed:
    """Follow one connection with a log of one's own.

    Args:
        beat: milliseconds after which the slave reports again.

    Returns:
        Why it ended, the epochs on the disk then, and where the log was to be cut.
    """
    cuts: list[int] = []

    async def run() -> Followed:
        given = SMALL | {"mappedFileSizeCommitLog": SIZE, "brokerRole": "SLAVE", "brokerId": 2}
        given |= {"haSendHeartbeatInterval": beat}
        settings = LiveSettings(make_broker_settings(given))
        async with MessageStore.open(path, settings) as store:
            if log:
                store.copying.begin_at(0)
                store.copying.take(log)
            alter: Any = None  # A slave requests no set.
            group = Group(Epochs(store.directory), cuts.append, alter)
            group.take_id(2)
            for each in epochs:
                group.epochs.append(each)
            reception = AutoSwitchReception(settings, store, group)
            async with master(lambda _, one: lead(one)) as address:
                with pytest.raises(MqlakeError) as ended:
                    await asyncio.wait_for(reception.follow(address, None), PATIENCE)
            return str(ended.value), Epochs(store.directory).all, cuts

    return asyncio.run(run())


def test_a_log_without_epochs_takes_them_over_before_it_acknowledges_more(tmp_path: Path) -> None:
    async def lead(one: Master) -> None:
        at = await handshake(one, FIRST, SECOND)
        frames = [(at, DATA[at:SHARED], FIRST), (SHARED, DATA[SHARED:], SECOND)]
        one.writer.write(
            b"".join(encode_head(begin, len(data), each, 0) + data for begin, data, each in frames)
        )
        while await report(one) < len(DATA):
            pass

    reason, epochs, _ = followed(tmp_path, lead, log=DATA[:SHARED])
    assert "closed" in reason
    assert epochs == (FIRST, SECOND)


@pytest.mark.parametrize("data", [b"", DATA])
def test_an_epoch_that_no_log_has_is_not_kept(tmp_path: Path, data: bytes) -> None:
    async def lead(one: Master) -> None:
        at = await handshake(one)
        one.writer.write(encode_head(at, len(data), Epoch(5, -1), 0) + data)
        one.writer.write(encode_head(at + len(data), 0, Epoch(5, -1), 0))
        await report(one)

    # What is empty is reported only by and by.
    _, epochs, _ = followed(tmp_path, lead, log=b"", beat=5000 if data else 200)
    assert epochs == ()


def test_a_master_of_an_older_epoch_has_nothing_cut(tmp_path: Path) -> None:
    async def lead(one: Master) -> None:
        await handshake(one, FIRST, end=SHARED + 5)

    reason, epochs, cuts = followed(tmp_path, lead, FIRST, SECOND, log=DATA)
    assert cuts == []
    assert epochs == (FIRST, SECOND)
    assert "has epoch 1, and this log has epoch 2" in reason


def test_a_master_of_a_newer_epoch_has_the_rest_cut(tmp_path: Path) -> None:
    async def lead(one: Master) -> None:
        await handshake(one, FIRST, Epoch(3, SHARED))

    _, _, cuts = followed(tmp_path, lead, FIRST, SECOND, log=DATA)
    assert cuts == [SHARED]


@pytest.mark.parametrize("own", [(), (Epoch(1, 0), Epoch(2, 0))])
def test_an_empty_log_has_the_epochs_of_an_empty_master(
    tmp_path: Path, own: tuple[Epoch, ...]
) -> None:
    async def lead(one: Master) -> None:
        await handshake(one, Epoch(1, 0), Epoch(3, 0), end=0)

    _, epochs, _ = followed(tmp_path, lead, *own, log=b"")
    assert epochs == (Epoch(1, 0), Epoch(3, 0))


@pytest.mark.parametrize(("recovered_from", "expected"), [(64, [64]), (None, []), (1 << 20, [])])
def test_records_that_a_power_loss_has_changed_are_cut_off(
    tmp_path: Path,
    recovered_from: int | None,
    expected: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lead(one: Master) -> None:
        at = await handshake(one, FIRST)
        changed = bytearray(DATA)
        changed[SHARED + 60] ^= 1
        one.writer.write(encode_head(at, len(DATA) - at, FIRST, 0) + changed[at:])
        await one.gone()

    monkeypatch.setattr(LogCopying, "recovered_from", recovered_from)
    reason, _, cuts = followed(tmp_path, lead, FIRST, log=DATA)
    assert cuts == expected
    assert f"differ{'' if expected else ' at physical offset'}" in reason
