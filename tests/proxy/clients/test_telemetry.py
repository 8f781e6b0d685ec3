"""A Telemetry stream belongs to a client while it is open."""

from __future__ import annotations

from pathlib import Path

from tests import simulated
from tests.proxy.clients.of_clients import known, producer
from tests.proxy.serving import serving


def test_a_client_stays_known_when_its_stream_ends(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            stream = await known(calls, "p1", producer("T"))
            client = calls.service.state.clients.known("p1")
            assert client.stream is not None
            await stream.end()
            assert calls.service.state.clients.known("p1") is client
            assert client.stream is None

    simulated.run(run())


def test_the_latest_stream_of_a_client_counts(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            first = await known(calls, "p1", producer("T"))
            await known(calls, "p1", producer("T"))
            await first.end()
            assert calls.service.state.clients.known("p1").stream is not None

    simulated.run(run())
