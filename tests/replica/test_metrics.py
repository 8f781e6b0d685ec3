"""What a replica tells monitoring systems."""

from __future__ import annotations

import asyncio
import threading
from http import HTTPStatus
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from mqlake.broker.metrics.reference import metrics_of
from mqlake.replica import metrics
from mqlake.replica.background import ReplicaThread
from mqlake.replica.metrics import ObservedReplica
from tests.broker.metrics.scraping import get_of, sample_name
from tests.broker.running import running
from tests.replica.copies import asked, copying, fill, has_all
from tests.replication.slaves import FILES, server
from tests.until import PATIENCE, until


def test_a_copy_says_how_far_it_is(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, 100)
            async with copying(asked(one, tmp_path / "copy")) as replica:
                observed = ObservedReplica(replica)
                await has_all(replica, one)
                await until(lambda: replica.progress().lag_bytes == 0)
                text = (await get_of(observed, "/metrics")).body.decode()
                assert (await get_of(observed, "/readyz")).status is HTTPStatus.OK
                lag = replica.status().lag_ms
            families = text_string_to_metric_families(text)
            found = {each.name: each.value for family in families for each in family.samples}
            wanted = {sample_name(each) for each in metrics_of(metrics)}
            assert wanted <= set(found)
            end = one.state.store.watermarks.end
            assert found["mqlake_replica_end_offset"] == end
            assert 0 < found["mqlake_replica_received_bytes_total"] <= end
            assert found["mqlake_replica_lag_bytes"] == 0
            assert found["mqlake_replica_follows"] == 1
            assert found["mqlake_replica_arrival_latency_milliseconds_count"] > 0
            assert 'master="broker-a"' in text
            assert lag is not None  # A scrape takes nothing from the next line of output.

    asyncio.run(run())


def test_a_replica_without_a_master_is_not_ready(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            options = asked(one, tmp_path / "copy", ha_address="127.0.0.1:1")
            async with copying(options) as replica:
                page = await get_of(ObservedReplica(replica), "/readyz")
                assert page.status is HTTPStatus.SERVICE_UNAVAILABLE
                assert page.body.strip()

    asyncio.run(run())


def test_whoever_asks_while_the_thread_ends_is_answered() -> None:
    async def run() -> None:
        for _ in range(50):
            copies = ReplicaThread({}, threading.Event())
            await asyncio.to_thread(copies.__enter__)
            ending = asyncio.create_task(asyncio.to_thread(copies.__exit__))
            async with asyncio.timeout(PATIENCE):
                while not ending.done():
                    assert list(await copies.samples()) == []
                    await asyncio.sleep(0)
            await ending

    asyncio.run(run())


def test_replicas_of_another_thread_are_asked_there(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, 10)
            options = asked(one, tmp_path / "copy", ha_address=server(one).address)
            copies = ReplicaThread({options: lambda: 1 << 62}, threading.Event())
            assert await copies.samples() == ()
            await asyncio.to_thread(copies.__enter__)
            try:
                async with asyncio.timeout(200):
                    end = one.state.store.watermarks.end
                    while True:
                        found = {each.metric: each.value for each in await copies.samples()}
                        if found.get(metrics.END) == end:
                            break
                        await asyncio.sleep(0.05)
            finally:
                await asyncio.to_thread(copies.__exit__)
            assert await copies.samples() == ()

    asyncio.run(run())
