"""`mqlake namesrv` with metrics: the pages are served while it runs."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from urllib.request import urlopen

import pytest

from mqlake.metrics.publishing import Published
from mqlake.namesrv.settings import make_namesrv_settings
from mqlake.programs.name_server import NameServerProgram
from tests.broker.running import next_port


def test_pages_are_served() -> None:
    port = next_port()

    async def run() -> None:
        settings = {"metricsExporterType": "PROM", "metricsPromExporterPort": port, "listenPort": 0}
        async with NameServerProgram(make_namesrv_settings(settings)):
            for path, wanted in (("metrics", b"mqlake_namesrv_topics"), ("readyz", b"ok")):
                body = await asyncio.to_thread(_get, f"http://127.0.0.1:{port}/{path}")
                assert wanted in body
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), 100).close()

    asyncio.run(run())


def test_the_last_totals_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        settings = {"metricsExporterType": "LOG", "listenPort": 0}
        async with NameServerProgram(make_namesrv_settings(settings)):
            pass

    with caplog.at_level(logging.INFO, "mqlake.metrics"):
        asyncio.run(run())
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    names = {line["scopeMetrics"][0]["metrics"][0]["name"] for line in lines}
    assert "mqlake_namesrv_topics" in names
    assert {line["scopeMetrics"][0]["scope"]["name"] for line in lines} == {"mqlake-namesrv"}


def test_a_failing_last_export_does_not_keep_the_name_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fails(_published: Published) -> None:
        raise RuntimeError("no export")

    monkeypatch.setattr(Published, "finish", fails)

    async def run() -> int:
        settings = {"metricsExporterType": "LOG", "listenPort": 0}
        program = NameServerProgram(make_namesrv_settings(settings))
        with pytest.raises(RuntimeError, match="no export"):
            async with program:
                pass
        return program.names.port

    port = asyncio.run(run())
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 100).close()


def test_name_servers_have_names_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> str:
        settings = {"metricsExporterType": "LOG", "listenPort": 0, "bindAddress": "0.0.0.0"}
        async with NameServerProgram(make_namesrv_settings(settings)) as program:
            return f"{socket.gethostname()}:{program.names.port}"

    with caplog.at_level(logging.INFO, "mqlake.metrics"):
        name = asyncio.run(run())
    assert all(f'"node_id","value":{{"stringValue":"{name}"}}' in line for line in caplog.messages)
    assert caplog.messages


def _get(url: str) -> bytes:
    with urlopen(url, timeout=200) as answer:
        return answer.read()
