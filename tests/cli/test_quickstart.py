"""docs/quickstart.md can be followed: its commands run in order, and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peer.rocketmq_cluster import free_ports
from tests.spark.servers import quick_environment

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
BLOCK = re.compile(r"```(sh|python)\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
PROGRAMS = {"sh": ["bash", "-ec"], "python": [sys.executable, "-c"]}
SECONDS = 240

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(2 * SECONDS),
]


@pytest.fixture
def serving() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_every_step_prints_what_the_page_shows(
    serving: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    (_, start, _), *steps = BLOCK.findall(PAGE.read_text())
    assert start == "mqlake broker --store ./store\n"
    assert len(steps) == 7
    port, names = map(str, free_ports(2))
    tools = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        **quick_environment(),
        "PATH": os.pathsep.join([tools, os.environ["PATH"]]),
        "PYSPARK_PYTHON": sys.executable,
    }
    environment.pop("NAMESRV_ADDR", None)  # with it, the broker would start no name server
    command = [*start.split(), "--port", port, "--namesrv-port", names]
    broker = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    serving.append(broker)
    wait_until_ready(broker)
    address = f"127.0.0.1:{names}"
    for language, code, shown in steps:
        ran = subprocess.run(
            [*PROGRAMS[language], code.replace("127.0.0.1:9876", address)],
            cwd=tmp_path,
            env=environment | {"NAMESRV_ADDR": address},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ran.returncode == 0, code + ran.stderr
        assert shown in ran.stdout, code


def wait_until_ready(broker: subprocess.Popen[str]) -> None:
    """Read the broker's log up to the line that says so; the pipe holds all that comes after."""
    assert broker.stderr is not None
    lines: list[str] = []
    for line in broker.stderr:
        lines.append(line)
        if ": ready after " in line:
            return
    pytest.fail("".join(lines))
