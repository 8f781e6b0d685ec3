"""`mqlake replica`, and what `mqlake follow` refuses beside `--replica-of`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.cli.app import run
from tests.broker.running import running
from tests.replica.copies import fill
from tests.replication.slaves import FILES, log_of, server


def test_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "copy")

    async def work() -> tuple[int, int]:
        async with running(tmp_path / "master", **FILES) as one:
            await fill(one, 80)
            words = ["replica", one.address, "--store", store, "--ha", server(one).address]
            code = await asyncio.to_thread(run_here, [*words, "--once", "--json"])
            return code, one.state.store.watermarks.end

    code, end = asyncio.run(work())
    assert code == 0
    found = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert found["maxOffset"] == found["masterMaxOffset"] == end
    assert found["lagBytes"] == 0
    assert found["problem"] is None
    assert log_of(tmp_path / "master") == log_of(tmp_path / "copy")


def run_here(words: list[str]) -> int:
    """Run a command as a process: signals are a main thread's."""
    return subprocess.run([sys.executable, "-m", "mqlake", *words], check=False).returncode


def test_a_master_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["replica", "127.0.0.1:1", "--store", str(tmp_path / "copy"), "--once"]
    assert run(words) == 2
    assert "127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--to", "store", "--replica-of", "a"],
        ["--to", "parquet", "--out", "t", "--replica-of", "a"],
        ["--to", "delta", "--out", "t", "--replica-of", "a", "--check"],
        ["--to", "delta", "--out", "t", "--replica-of", "a", "--replica-of-cluster", "c"],
        ["--to", "delta", "--out", "t", "--keep-hours", "1"],
    ],
)
def test_options_that_do_not_go_together(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["follow", str(tmp_path), *words]) == 2
    assert "--replica-of" in capsys.readouterr().err
