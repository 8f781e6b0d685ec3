from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Awaitable, Callable
from html import unescape
from pathlib import Path

import pytest
from jinja2 import ChoiceLoader, DictLoader

from mqlake.client.message import Message
from mqlake.console.page import environment
from mqlake.console.stores.replicas import SlavePositions
from mqlake.console.stores.store_broker import OwnBroker
from mqlake.jobs.archive.job import archive
from mqlake.lake.options import Format
from mqlake.protocol.bodies.ha import HaClientInfo, HaConnectionInfo, HaRuntimeInfo
from mqlake.storage.object_target import LocalTarget
from mqlake.testing import broker
from mqlake.testing.running_broker import RunningBroker
from tests.console.site import Site, site, words
from tests.console.stores.test_lake_tables import add_dead_letters
from tests.golden import store
from tests.lake.union.kept_lake import KeptLake
from tests.until import until

Work = Callable[[Site], Awaitable[None]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "store"
    shutil.copytree(store("rmq5-clean").path, found)
    return found


def visit(
    running: RunningBroker, work: Callable[[Site], Awaitable[None]], **options: object
) -> None:
    async def run() -> None:
        async with site(running.name_server, **options) as visitor:
            await work(visitor)

    asyncio.run(run())


async def shown(visitor: Site, path: str) -> str:
    """Return a page once nothing of it is still being read."""
    text = ""

    async def is_read() -> bool:
        nonlocal text
        text = words(await visitor.get(path))
        return "in a moment" not in text

    await until(is_read)
    return text


def test_shows_segments_index_files_and_the_checkpoint(running: RunningBroker, path: Path) -> None:
    async def work(visitor: Site) -> None:
        text = await shown(visitor, "/store")
        assert "commitlog/00000000000000000000" in text
        assert "index files" in text
        assert "stopped cleanly" in text

    visit(running, work, stores=(path,))


def test_shows_what_the_last_start_recovered(running: RunningBroker, path: Path) -> None:
    async def work(visitor: Site) -> None:
        text = await shown(visitor, "/store")
        assert "after a clean stop: read 0 B of the log" in text
        text = await shown(visitor, f"/store?store={path}")
        assert "Last recovery unknown: mqlake's broker notes" in text

    visit(running, work, stores=(Path(running.store), path))


def test_shows_slaves_and_copies_with_their_lag(running: RunningBroker, tmp_path: Path) -> None:
    with running.producer() as producer:
        producer.send(Message(topic="copied", body=b"x" * 1000))
    copy = tmp_path / "copy"
    shutil.copytree(running.store, copy)
    (copy / "config" / "broker.properties").write_text("brokerName=broker-a\n")
    with running.producer() as producer:
        producer.send(Message(topic="copied", body=b"x" * 3000))

    async def work(visitor: Site) -> None:
        text = await shown(visitor, "/store/replicas")
        assert f"broker-a at {running.address} is the master. Its log ends at" in text
        assert "No slave is connected." in text
        assert "broker-a no process 0" in text
        assert "3.2 KiB" in text or "3.1 KiB" in text
        assert "not a store" in text
        text = await shown(visitor, f"/store/replicas?store={copy}")
        assert "No running broker of this cluster has this directory" in text

    (tmp_path / "other").mkdir()
    visit(running, work, stores=(Path(running.store), copy, tmp_path / "other"))


def test_shows_a_live_slave_from_both_sides(running: RunningBroker, tmp_path: Path) -> None:
    role = {"brokerName": "broker-a", "brokerRole": "SLAVE", "brokerId": 1}
    slave_store = tmp_path / "slave"

    async def until_it_says(visitor: Site, path: str, *texts: str) -> str:
        text = ""

        async def is_there() -> bool:
            nonlocal text
            visitor.console.view(None).kept.forget()
            text = words(await visitor.get(path))
            return all(each in text for each in texts)

        await until(is_there)
        return text

    async def with_slave(visitor: Site) -> None:
        await until_it_says(visitor, "/store/replicas", "0 B", "yes", str(slave_store))
        path = f"/store/replicas?store={slave_store}"
        text = await until_it_says(visitor, path, "is a slave of 127.0.0.1:", "Lag 0 B")
        assert f"broker-a at {slave_address} is a slave of" in text

    async def without_slave(visitor: Site) -> None:
        await until_it_says(visitor, "/store/replicas", "No slave is connected.")
        path = f"/store/replicas?store={slave_store}"
        await until_it_says(visitor, path, "No running broker of this cluster has this directory")

    stores = (Path(running.store), slave_store)
    with running.producer() as producer:
        producer.send(Message(topic="replicated", body=b"x" * 1000))
    with broker(slave_store, namesrvAddr=running.name_server, **role) as slave:
        slave_address = slave.address
        visit(running, with_slave, stores=stores)
    visit(running, without_slave, stores=stores)


def test_says_how_far_a_slave_lags_and_what_it_lacks() -> None:
    """Positions are given: how long a real slave lags depends on the machine."""
    slave = HaConnectionInfo("127.0.0.1:1", 1000, 5 << 20, in_sync=False)
    master = HaRuntimeInfo(
        master=True, master_commit_log_max_offset=1000 + (5 << 20), ha_connection_info=[slave]
    )
    lost = HaClientInfo("", 0, 4096, 0, 0, 8192, problem="127.0.0.1:2: cannot be reached")
    own = OwnBroker("broker-a", "127.0.0.1:3", {})

    loader = environment().loader
    assert loader is not None
    alone = ChoiceLoader(
        [DictLoader({"store/base.html": "{% block view %}{% endblock %}"}), loader]
    )
    template = environment().overlay(loader=alone, cache_size=0).get_template("store/replicas.html")

    def rendered(found: SlavePositions) -> str:
        view = {"own": own, "replication": found, "copies": [], "this": None, "command": ""}
        text = re.sub(r"<[^>]*>", " ", template.render(**view, here="/store/replicas"))
        return unescape(" ".join(text.split()))

    text = rendered(SlavePositions(master, ""))
    assert "127.0.0.1:1 1,000 5.0 MiB 0 B no" in text
    text = rendered(SlavePositions(HaRuntimeInfo(master=False, ha_client_runtime_info=lost), ""))
    assert "is a slave of a master that is not connected" in text
    assert "127.0.0.1:2: cannot be reached" in text
    assert "Lag 4.0 KiB" in text
    text = rendered(SlavePositions(None, "broker-a did not answer: slaves are missing"))
    assert "broker-a did not answer: slaves are missing" in text


def test_says_which_index_file_is_damaged(running: RunningBroker, path: Path) -> None:
    index = min((path / "index").iterdir())
    os.truncate(index, 100)

    async def work(visitor: Site) -> None:
        assert f"index/{index.name} is not used" in await shown(visitor, "/store")

    visit(running, work, stores=(path,))


def test_shows_what_will_be_deleted_tonight_and_why(running: RunningBroker, path: Path) -> None:
    for segment in (path / "commitlog").iterdir():
        os.utime(segment, (1, 1))

    async def work(visitor: Site) -> None:
        text = await shown(visitor, "/store/retention")
        assert "it has expired" in text
        assert "messages stored before" in text
        assert "No running broker of this cluster has this directory" in text
        text = await shown(visitor, "/store/retention?fileReservedTime=900000&diskUsed=10")
        assert "Nothing is deleted then" in text
        refused = await visitor.get("/store/retention?deleteWhen=never")
        assert "deleteWhen" in words(refused)
        assert (await visitor.get("/store/retention?diskUsed=x")).status_code == 400

    visit(running, work, stores=(path,))


def test_plans_with_the_settings_of_the_running_broker(running: RunningBroker) -> None:
    async def work(visitor: Site) -> None:
        text = await shown(visitor, "/store/retention")
        assert "the settings of the running broker broker-a" in text

    visit(running, work, stores=(Path(running.store),))


def test_verifies_as_a_job(running: RunningBroker, path: Path) -> None:
    async def work(visitor: Site) -> None:
        started = await visitor.post("/store/verify/start", {"store": str(path)})
        assert "The verification has started" in words(started)
        again = await visitor.post("/store/verify/start", {"store": str(path)})
        assert again.status_code == 409
        await visitor.console.jobs.wait()
        assert "No damage was found" in await shown(visitor, "/store/verify")

    visit(running, work, stores=(path,))


def test_a_verification_is_cancelled(running: RunningBroker, path: Path) -> None:
    async def work(visitor: Site) -> None:
        await visitor.post("/store/verify/start", {"store": str(path)})
        job = visitor.console.jobs.running
        assert job is not None
        text = words(await visitor.post("/store/verify/cancel", {"job": str(job.number)}))
        assert "was cancelled" in text
        await visitor.console.jobs.wait()
        again = await visitor.post("/store/verify/cancel", {"job": str(job.number)})
        assert again.status_code == 409

    visit(running, work, stores=(path,))


def test_damage_is_listed(running: RunningBroker, path: Path) -> None:
    with min((path / "commitlog").iterdir()).open("r+b") as file:
        file.seek(5000)
        file.write(b"\xff" * 64)

    async def work(visitor: Site) -> None:
        await visitor.post("/store/verify/start", {"store": str(path)})
        await visitor.console.jobs.wait()
        text = await shown(visitor, "/store/verify")
        assert "damaged" in text
        assert "commitlog/00000000000000000000" in text

    visit(running, work, stores=(path,))


def test_a_read_only_console_starts_nothing(running: RunningBroker, path: Path) -> None:
    async def work(visitor: Site) -> None:
        refused = await visitor.post("/store/verify/start", {"store": str(path)})
        assert refused.status_code == 403
        assert visitor.console.jobs.running is None
        assert "Verify now" not in words(await visitor.get("/store/verify"))

    visit(running, work, stores=(path,), read_only=True)


def test_shows_lake_tables_and_archives(running: RunningBroker, tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.PARQUET)
    lake.take()
    archive(lake.store.path, LocalTarget(tmp_path / "archive"))

    async def work(visitor: Site) -> None:
        text = await shown(visitor, "/store/lake")
        assert str(lake.out) in text
        assert "Parquet table" in text
        assert "does not write this table" in text
        text = await shown(visitor, "/store/archives")
        assert "Part of the log" in text
        assert "not an archive" in text

    visit(
        running,
        work,
        stores=(lake.store.path,),
        tables=(str(lake.out), str(tmp_path)),
        archives=(str(tmp_path / "archive"), str(tmp_path)),
    )


def test_shows_the_dead_letters_of_a_lake_table(running: RunningBroker, tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.PARQUET)
    lake.take()

    async def before(visitor: Site) -> None:
        assert "Dead letters None." in await shown(visitor, "/store/lake")

    visit(running, before, stores=(lake.store.path,), tables=(str(lake.out),))
    add_dead_letters(lake)

    async def after(visitor: Site) -> None:
        text = await shown(visitor, "/store/lake")
        assert "refused body is no <JSON>" in text
        assert "(damaged)" in text
        assert "<JSON>" not in (await visitor.get("/store/lake")).text

    visit(running, after, stores=(lake.store.path,), tables=(str(lake.out),))


def test_only_the_stores_of_the_console_are_shown(running: RunningBroker, path: Path) -> None:
    async def work(visitor: Site) -> None:
        for page in ("/store", "/store/retention", "/store/verify", "/sql"):
            assert (await visitor.get(f"{page}?store=/etc")).status_code == 404
        started = await visitor.post("/store/verify/start", {"store": "/etc"})
        assert started.status_code == 404

    visit(running, work, stores=(path,))


def test_says_that_there_is_no_store(running: RunningBroker) -> None:
    async def work(visitor: Site) -> None:
        found = await visitor.get("/store")
        assert found.status_code == 404
        assert "--store" in words(found)

    visit(running, work)
