"""How many slaves a put waits for, and up to where they have the log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mqlake.store import Message, MessageStore, PutError
from mqlake.store.append.put_result import PutStatus
from mqlake.store.live_settings import LiveSettings
from mqlake.store.loop import service_task
from mqlake.store.loop.disk_jobs import DiskJobs
from mqlake.store.replication.copies import Copies
from mqlake.store.replication.in_sync_set import InSyncSet
from mqlake.store.services import Job
from mqlake.store.settings import make_settings
from tests import simulated
from tests.until import until

SYNC = {
    "brokerRole": "SYNC_MASTER",
    "mappedFileSizeCommitLog": 1 << 16,
    "slaveTimeout": 60_000,
    "syncFlushTimeout": 60_000,
}
PATIENCE = 200


class Log:
    end = 1000


def copies(**settings: object) -> Copies:
    found = Copies(LiveSettings(make_settings(SYNC | settings)), lambda: Log.end)
    found.is_served = True
    return found


def test_by_default_a_sync_master_waits_for_one_slave() -> None:
    found = copies()
    assert (found.needed, found.confirmed, found.in_sync) == (1, 0, 0)
    assert found.missing is not None
    one = found.join(200)
    assert found.missing is None
    assert found.confirmed == 0  # it was sent nothing: its log may be another one
    found.acknowledge(one, 200)
    assert found.confirmed == 0
    found.acknowledge(one, 300)
    assert found.confirmed == 300
    found.acknowledge(one, 200)  # what a slave has, it does not lose
    assert found.confirmed == 300
    found.leave(one)
    assert found.confirmed == 0


def test_an_async_master_waits_for_none() -> None:
    found = copies(brokerRole="ASYNC_MASTER")
    assert (found.needed, found.confirmed, found.missing) == (0, 1000, None)


def test_of_several_slaves_as_many_as_are_needed_count() -> None:
    found = copies(inSyncReplicas=3)
    for offset in (100, 500, 300):
        found.acknowledge(found.join(0), offset)
    assert (found.needed, found.confirmed) == (2, 300)


def test_a_slave_that_lags_too_far_is_not_in_sync() -> None:
    found = copies(haMaxGapNotInSync=100)
    one = found.join(899)
    assert found.in_sync == 0
    found.acknowledge(one, 900)
    assert found.in_sync == 1


@pytest.mark.parametrize(
    ("joined", "least", "needed"), [(0, 1, 0), (1, 1, 1), (9, 1, 2), (0, 2, 1)]
)
def test_fewer_copies_while_fewer_slaves_are_in_sync(joined: int, least: int, needed: int) -> None:
    found = copies(inSyncReplicas=3, enableAutoInSyncReplicas=True, minInSyncReplicas=least)
    for _ in range(joined):
        found.join(1000)
    assert found.needed == needed


Test = Callable[[MessageStore, LiveSettings[object]], Awaitable[None]]


def on_a_store(path: Path, test: Test, **settings: object) -> None:
    async def run() -> None:
        live = LiveSettings(make_settings(SYNC | settings))
        async with MessageStore.open(path, live) as store:
            store.copies.serve()
            await test(store, live)  # pyright: ignore[reportArgumentType]

    simulated.run(run())


async def status(put: Awaitable[object]) -> PutStatus:
    try:
        await put
    except PutError as error:
        return error.result.status
    return PutStatus.PUT_OK


async def kept(store: MessageStore) -> None:
    """Return once this store itself has done all that its puts wait for."""
    await until(lambda: store.watermarks.kept >= store.watermarks.end)


def message(**given: object) -> Message:
    return Message("Topic", b"body", **given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_a_put_is_acknowledged_once_a_slave_has_it(tmp_path: Path, flush: str) -> None:
    async def test(store: MessageStore, _: object) -> None:
        one = store.copies.join(0)
        put = asyncio.ensure_future(store.put(message()))
        await asyncio.sleep(0)
        await kept(store)
        await asyncio.sleep(0.1)
        assert not put.done()
        assert store.copying.end == store.watermarks.end  # and read it may be
        store.copies.acknowledge(one, store.watermarks.end - 1)
        await asyncio.sleep(0.1)
        assert not put.done()
        store.copies.acknowledge(one, store.watermarks.end)
        await asyncio.wait_for(put, PATIENCE)

    on_a_store(tmp_path, test, flushDiskType=flush)


_RUN_IN_THREAD = DiskJobs._run_in_thread


def test_what_is_durable_is_sent_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a controller it is confirmed only once the slaves have it, so they are told before."""
    monkeypatch.setattr(service_task, "LOOK_INTERVAL", 60)

    async def test(store: MessageStore, _: object) -> None:
        def slowly(jobs: DiskJobs, job: Job) -> None:
            """Run a job as a slow disk does: what was put is dispatched before."""
            store.core.tick()
            _RUN_IN_THREAD(jobs, job)

        monkeypatch.setattr(DiskJobs, "_run_in_thread", slowly)
        in_sync_set = InSyncSet(0)
        in_sync_set.set((0, 1), 1)
        store.copies.lead(in_sync_set)
        durable = asyncio.Event()

        def grown() -> None:
            if 0 < store.copying.end == store.watermarks.end:
                durable.set()

        store.copying.growth.listen(grown)
        put = asyncio.ensure_future(store.put(message()))
        await asyncio.wait_for(durable.wait(), PATIENCE)
        put.cancel()

    on_a_store(tmp_path, test, flushDiskType="SYNC_FLUSH")


def test_without_a_slave_the_answer_comes_at_once(tmp_path: Path) -> None:
    async def test(store: MessageStore, _: object) -> None:
        assert await status(store.put(message())) is PutStatus.SLAVE_NOT_AVAILABLE
        (result,) = await store.appends.confirm(store.appends.many([message()]))
        assert result.status is PutStatus.SLAVE_NOT_AVAILABLE
        assert result.count == 1  # it is stored
        assert "inSyncReplicas" in result.reason

    on_a_store(tmp_path, test)


def test_a_slave_that_does_not_acknowledge_in_time_is_a_slave_timeout(tmp_path: Path) -> None:
    async def test(store: MessageStore, _: object) -> None:
        store.copies.join(0)
        assert await status(store.put(message())) is PutStatus.FLUSH_SLAVE_TIMEOUT

    on_a_store(tmp_path, test, slaveTimeout=50)


@pytest.mark.parametrize("text", ["false", "FALSE", "no"])
def test_a_message_may_ask_not_to_wait(tmp_path: Path, text: str) -> None:
    async def test(store: MessageStore, _: object) -> None:
        store.copies.join(0)
        assert await status(store.put(message(properties={"WAIT": text}))) is PutStatus.PUT_OK
        encoded = f"WAIT\x01{text}\x02UNIQ_KEY\x01a\x02".encode()
        results = store.appends.many([message(encoded_properties=encoded)])
        assert store.watermarks.unconfirmed(results) is None
        waits = message(encoded_properties=b"WAIT\x01true\x02A\x01b\x02")
        assert store.watermarks.unconfirmed(store.appends.many([waits])) is not None

    on_a_store(tmp_path, test)


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_messages_put_together_wait_for_the_last_that_asks_to(tmp_path: Path, flush: str) -> None:
    async def test(store: MessageStore, _: object) -> None:
        one = store.copies.join(0)
        unwaited = message(properties={"WAIT": "false"})
        results = store.appends.many([unwaited, message(), unwaited])
        confirmed = asyncio.ensure_future(store.appends.confirm(results))
        await kept(store)
        await asyncio.sleep(0.1)
        assert not confirmed.done()
        store.copies.acknowledge(one, results[-1].end)
        assert all(result.is_ok for result in await asyncio.wait_for(confirmed, PATIENCE))

    on_a_store(tmp_path, test, flushDiskType=flush)


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
@pytest.mark.parametrize("joined", [False, True])
def test_a_put_that_waits_is_not_acknowledged_by_a_demotion(
    tmp_path: Path, flush: str, joined: bool
) -> None:
    async def test(store: MessageStore, live: LiveSettings[object]) -> None:
        if joined:
            store.copies.join(0)
        confirmed = asyncio.ensure_future(store.appends.confirm(store.appends.many([message()])))
        if joined:
            await asyncio.sleep(0.1)
        live.switch(make_settings(SYNC | {"slaveTimeout": 200, "brokerRole": "SLAVE"} | given))
        (result,) = await asyncio.wait_for(confirmed, PATIENCE)
        late, none = PutStatus.FLUSH_SLAVE_TIMEOUT, PutStatus.SLAVE_NOT_AVAILABLE
        assert result.status in (late, none)
        assert result.count == 1

    given = {"flushDiskType": flush}
    on_a_store(tmp_path, test, slaveTimeout=200, **given)


@pytest.mark.parametrize("way", ["put", "put_fields", "put_many", "confirm"])
def test_a_put_that_waits_for_the_disk_is_not_acknowledged_by_a_demotion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    demotions: list[Callable[[], None]] = []

    def demoted(jobs: DiskJobs, job: Job) -> None:
        """Run a job of the disk, and switch the role before its first one."""
        while demotions:
            demotions.pop()()
        _RUN_IN_THREAD(jobs, job)

    async def test(store: MessageStore, live: LiveSettings[object]) -> None:
        async def confirm() -> None:
            (result,) = await store.appends.confirm(store.appends.many([message()]))
            raise PutError(result)

        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "put": lambda: store.put(message()),
            "put_fields": lambda: store.put_fields("Topic", b"body"),
            "put_many": lambda: store.put_many([message()]),
            "confirm": confirm,
        }
        slave = make_settings(SYNC | given | {"brokerRole": "SLAVE"})
        demotions.append(lambda: live.switch(slave))
        monkeypatch.setattr(DiskJobs, "_run_in_thread", demoted)
        found = await asyncio.wait_for(status(calls[way]()), PATIENCE)
        assert not demotions
        assert found is PutStatus.SLAVE_NOT_AVAILABLE

    given = {"brokerRole": "ASYNC_MASTER", "flushDiskType": "SYNC_FLUSH"}
    on_a_store(tmp_path, test, **given)


def test_a_put_that_waits_goes_on_at_an_async_master(tmp_path: Path) -> None:
    async def test(store: MessageStore, live: LiveSettings[object]) -> None:
        store.copies.join(0)
        put = asyncio.ensure_future(store.put(message()))
        await asyncio.sleep(0.1)
        assert not put.done()
        live.switch(make_settings(SYNC | {"brokerRole": "ASYNC_MASTER"}))
        await asyncio.wait_for(put, PATIENCE)

    on_a_store(tmp_path, test)


def test_fewer_copies_from_now_on(tmp_path: Path) -> None:
    async def test(store: MessageStore, live: LiveSettings[object]) -> None:
        store.copies.join(0)
        put = asyncio.ensure_future(store.put(message()))
        await asyncio.sleep(0.1)
        assert not put.done()
        live.replace(make_settings(SYNC | {"inSyncReplicas": 1}))
        await asyncio.wait_for(put, PATIENCE)

    on_a_store(tmp_path, test)
