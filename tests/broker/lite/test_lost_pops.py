"""A pop of lite topics whose connection is closed hides no message."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.broker.lite.pops import LitePops
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.remoting.slices import Job
from tests import simulated
from tests.broker.lite.lites import LiteClient, lite_broker, popped, send
from tests.broker.running import PATIENCE, Running

LONG = 2 * int(PATIENCE * 1000)


def test_a_waiting_pop_whose_connection_is_closed_gets_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with lite_broker(tmp_path) as broker:
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "s1")
            before, other = broker.broker.peers, Running(broker.broker)
            real = LitePops._try_all

            def try_all(self: LitePops, clients: list[str]) -> Job[None]:
                for peer in broker.broker.peers - before:
                    peer.close()
                yield from real(self, clients)

            monkeypatch.setattr(LitePops, "_try_all", try_all)
            lost = asyncio.create_task(LiteClient(other).pop(poll=LONG))
            await asyncio.sleep(1)
            await send(broker, "s1", "a")
            with pytest.raises(ConnectionFailedError):
                await lost
            await other.client.close()
            ((record, _),) = popped(await client.pop())
            assert record.body == b"a"

    simulated.run(run())
