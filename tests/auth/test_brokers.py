"""Closed brokers sign their requests to each other with the inner credentials."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.broker.slave import following
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from tests.auth.closed import CLOSED
from tests.broker.running import running
from tests.broker.slave.pairs import SLAVE, name_server
from tests.until import until


def test_a_slave_copies_the_tables_of_a_closed_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "TICK", 0.05)
    monkeypatch.setattr(following, "FULL", 0.05)
    monkeypatch.setattr(following, "_AGAIN", 0.05)
    settings = CLOSED | {"authorizationEnabled": "true"}

    async def run() -> None:
        async with (
            name_server() as names,
            running(tmp_path / "master", namesrvAddr=names, **settings) as master,  # pyright: ignore[reportArgumentType]
            running(tmp_path / "slave", namesrvAddr=names, **(SLAVE | settings)) as slave,  # pyright: ignore[reportArgumentType]
        ):
            master.state.topics.put(Topic("Orders", 4, 4))
            master.state.groups.put(SubscriptionGroup("readers"))
            master.state.store.config.consumer_offsets.commit("readers", "Orders", 1, 7)
            await until(lambda: "Orders" in slave.state.topics)
            await until(lambda: "readers" in slave.state.groups)
            offsets = slave.state.store.config.consumer_offsets
            await until(lambda: offsets.query("readers", "Orders", 1) == 7)

    asyncio.run(run())
