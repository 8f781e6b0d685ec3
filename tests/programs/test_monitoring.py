"""The pages for monitoring of `mqlake broker`, over HTTP."""

from __future__ import annotations

import asyncio
import threading
from http import HTTPStatus
from pathlib import Path

import pytest

from mqlake.broker.broker import Broker
from mqlake.broker.settings import make_broker_settings
from mqlake.programs import broker as program
from mqlake.programs.broker import BrokerProgram
from tests.broker.running import SMALL, next_port

HOST = "127.0.0.1"


async def get(port: int, path: str) -> tuple[int, str]:
    """Return the status and the body of an answer."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split(" ")[1]), body


def test_pages_are_served_from_before_the_start_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        is_asked, port = asyncio.Event(), next_port()
        are_wanted, is_loading = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def load() -> None:
            loop.call_soon_threadsafe(is_loading.set)
            are_wanted.wait()

        monkeypatch.setattr(program, "load_kernels", load)

        class Recovering(Broker):
            async def start(self) -> None:
                await is_asked.wait()
                await super().start()

        monkeypatch.setattr(program, "Broker", Recovering)
        settings = make_broker_settings(
            {
                **SMALL,
                "storePathRootDir": str(tmp_path),
                "listenPort": next_port(),
                "metricsExporterType": "PROM",
                "metricsPromExporterPort": port,
            }
        )
        running = BrokerProgram(settings, next_port())
        starting = asyncio.create_task(running.__aenter__())
        while not await _is_served(port):
            assert not starting.done()
            await asyncio.sleep(0.01)
        await is_loading.wait()
        assert await get(port, "/livez") == (HTTPStatus.OK, "ok\n")
        assert (await get(port, "/readyz"))[0] == HTTPStatus.SERVICE_UNAVAILABLE
        are_wanted.set()
        status, reason = await get(port, "/readyz")
        assert (status, "starts" in reason) == (HTTPStatus.SERVICE_UNAVAILABLE, True)
        assert "mqlake_event_loop_lag_seconds" in (await get(port, "/metrics"))[1]
        is_asked.set()
        await starting
        assert await get(port, "/readyz") == (HTTPStatus.OK, "ok\n")
        status, text = await get(port, "/metrics")
        assert status == HTTPStatus.OK
        assert 'node_id="broker-a"' in text
        assert "rocketmq_topic_number{" in text
        await running.__aexit__()
        assert not await _is_served(port)

    asyncio.run(check())


async def _is_served(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except ConnectionError:
        return False
    writer.close()
    return True


def test_a_broker_without_them_needs_no_library_for_them(tmp_path: Path) -> None:
    async def check() -> None:
        port = next_port()
        settings = make_broker_settings(
            {
                **SMALL,
                "storePathRootDir": str(tmp_path),
                "listenPort": next_port(),
                "metricsPromExporterPort": port,
            }
        )
        async with BrokerProgram(settings, next_port()):
            assert not await _is_served(port)

    asyncio.run(check())
