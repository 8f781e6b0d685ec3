"""A real Prometheus that scrapes the brokers of a test."""

from __future__ import annotations

import asyncio
import json
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.broker.running import next_port
from tests.until import until

ROOT = Path(__file__).parents[2]
FETCHED = ROOT / "build" / "prometheus" / "usr" / "bin"
HOST = "127.0.0.1"


class PrometheusMissingError(Exception):
    """There is no Prometheus; the message is one line that says how to get one."""


def program(name: str) -> str:
    """Return the path of a program of Prometheus: "prometheus" or "promtool".

    Raises:
        PrometheusMissingError: it is not installed.
    """
    found = shutil.which(name) or shutil.which(name, path=FETCHED)
    if found is None:
        raise PrometheusMissingError(f"{name} is not installed (apt-get install prometheus)")
    return found


class Prometheus:
    """A running server."""

    def __init__(self, port: int) -> None:
        self._url = f"http://{HOST}:{port}"

    async def is_ready(self) -> bool:
        try:
            await asyncio.to_thread(self._get, "/-/ready")
        except OSError:
            return False
        return True

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of a query now."""
        path = f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        try:
            answer = await asyncio.to_thread(self._get, path)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from None
        return json.loads(answer)["data"]["result"]

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(self._url + path, timeout=100) as answer:
            return answer.read()


@asynccontextmanager
async def scraping(directory: Path, ports: Sequence[int], rules: Path) -> AsyncIterator[Prometheus]:
    """Scrape these ports of this machine, several times a second, while the block runs.

    Raises:
        PrometheusMissingError: it is not installed.
    """
    port = next_port()
    targets = ", ".join(f'"{HOST}:{each}"' for each in ports)
    settings = directory / "prometheus.yml"
    settings.write_text(
        f"""\
global:
  scrape_interval: 500ms
  scrape_timeout: 500ms
rule_files: ["{rules}"]
scrape_configs:
  - job_name: mqlake
    static_configs:
      - targets: [{targets}]
"""
    )
    command = [
        program("prometheus"),
        f"--config.file={settings}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={HOST}:{port}",
    ]
    with (directory / "prometheus.log").open("w") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        try:
            server = Prometheus(port)
            await until(lambda: process.returncode is not None or server.is_ready())
            assert process.returncode is None, (directory / "prometheus.log").read_text()
            yield server
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
