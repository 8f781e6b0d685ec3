"""A master and its slave in one process, at one name server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.state.registration import registration
from mqlake.formats import fastjson
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.store.settings import BrokerRole
from tests.broker.running import PATIENCE, Running, running

SLAVE: dict[str, object] = {
    "brokerRole": "SLAVE",
    "brokerId": 1,
    "flushConsumerOffsetInterval": 20,
    "flushDelayOffsetInterval": 20,
    "timerFlushIntervalMs": 20,
}


@contextmanager
def registered() -> Iterator[None]:
    """Let brokers start, and answer changes of topics, only once name servers know of them.

    As a rule they wait for two seconds, which a busy machine may need for something else.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registration, "_FIRST", PATIENCE)
        patch.setattr(registration, "_CHANGE", PATIENCE)
        yield


@asynccontextmanager
async def name_server() -> AsyncIterator[str]:
    server = NameServer(NamesrvSettings(bind_address="127.0.0.1", listen_port=0))
    address = f"127.0.0.1:{await server.start()}"
    try:
        with registered():
            yield address
    finally:
        await server.stop()


@asynccontextmanager
async def pair(path: Path, **slave: object) -> AsyncIterator[tuple[Running, Running]]:
    """Run a master on `path`/master, and its slave on `path`/slave; their tables may differ yet."""
    async with (
        name_server() as names,
        running(path / "master", namesrvAddr=names) as master,
        running(path / "slave", namesrvAddr=names, **(SLAVE | slave)) as follower,
    ):
        assert follower.state.replicas.master_address == master.address
        yield master, follower


def switch(broker: Running, role: BrokerRole, broker_id: int) -> None:
    """Promote or demote a broker."""
    live = broker.runtime.live
    live.switch(msgspec.structs.replace(live.now, broker_role=role, broker_id=broker_id))


def file(path: Path, name: str) -> Any:
    """Return a configuration file's object, None while there is none."""
    found = path / "config" / name
    return fastjson.loads(found.read_bytes()) if found.exists() else None
