"""docs/quickstart.md as its reader follows it: the commands, in order, with one Python's mqlake."""

from __future__ import annotations

import itertools
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from tests.peer.rocketmq_cluster import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
SECONDS = 240
"""A step that takes longer has failed."""

_BLOCK = re.compile(r"```(sh|python)\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
_REAPER = Path(__file__).with_name("reaper.py")
_START = "mqlake broker --store ./store\n"
_READY = ": ready after "


class QuickstartStep(NamedTuple):
    """What the reader types, and what the page says is then printed.

    Attributes:
        language: `sh` or `python`.
    """

    language: str
    code: str
    shown: str


class Output(NamedTuple):
    """What a program has printed, and how it spent its time.

    Attributes:
        wall: seconds from its start.
        cpu: seconds of CPU time of it and its children, user and system.
        silence: the longest time without output on stdout or stderr, in seconds.
    """

    stdout: str
    stderr: str
    wall: float
    cpu: float
    silence: float


def steps() -> list[QuickstartStep]:
    """Return the steps that follow the start of the broker, which is the page's first command."""
    (_, start, _), *others = _BLOCK.findall(PAGE.read_text())
    assert start == _START
    return [QuickstartStep(*each) for each in others]


class Reader:
    """Follows the page in a directory of its own, with the tools of one Python environment.

    Args:
        python: the interpreter, beside which `mqlake` is installed.
        directory: the reader's working directory.
        variables: additional variables of the environment.
    """

    def __init__(self, python: Path, directory: Path, variables: Mapping[str, str]) -> None:
        self._python, self._directory = python, directory
        self._port, self._names = map(str, free_ports(2))
        self._environment = {
            **os.environ,
            **variables,
            "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
            "PYSPARK_PYTHON": str(python),
        }
        self._environment.pop("NAMESRV_ADDR", None)  # With it, the broker starts no name server.

    @contextmanager
    def broker(self) -> Iterator[Output]:
        """Start the page's broker, and wait until it is ready; stop it at the end."""
        began = time.monotonic()
        process = subprocess.Popen(
            [*_START.split(), "--port", self._port, "--namesrv-port", self._names],
            cwd=self._directory,
            env=self._environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        try:
            lines, silence = _until_ready(process.stderr)
            cpu = _cpu_of(process.pid)
            yield Output("", "".join(lines), time.monotonic() - began, cpu, silence)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        assert process.returncode == 0

    def run(self, step: QuickstartStep) -> Output:
        """Run a step, and check that it prints what the page shows."""
        address = f"127.0.0.1:{self._names}"
        program = {"sh": ["bash", "-ec"], "python": [str(self._python), "-c"]}[step.language]
        code = step.code.replace("127.0.0.1:9876", address)
        began, before = time.monotonic(), _cpu_of_children()
        terminal, its_end = os.openpty()  # Progress is for people: programs ask who reads stderr.
        process = subprocess.Popen(
            [sys.executable, _REAPER, *program, code],
            cwd=self._directory,
            env=self._environment | {"NAMESRV_ADDR": address},
            stdout=subprocess.PIPE,
            stderr=its_end,
            start_new_session=True,
        )
        os.close(its_end)
        assert process.stdout is not None
        chunks = _Chunks(process.stdout, os.fdopen(terminal, "rb", buffering=0))
        is_late = False
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            is_late = True
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        finally:
            stdout, stderr, silence = chunks.ended()
        wall, cpu = time.monotonic() - began, _cpu_of_children() - before
        assert not is_late, f"{step.code}not done after {SECONDS} s\n{stdout}{stderr}"
        assert process.returncode == 0, step.code + stderr
        assert step.shown in stdout, step.code + stdout
        return Output(stdout, stderr, wall, cpu, silence)


class _Chunks:
    """Reads both outputs of a process, and notes when something came."""

    def __init__(self, *pipes: IO[bytes]) -> None:
        self._times = [time.monotonic()]
        self._texts: list[list[bytes]] = [[], []]
        self._threads = [
            threading.Thread(target=self._read, args=(pipe, texts))
            for pipe, texts in zip(pipes, self._texts, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, pipe: IO[bytes], texts: list[bytes]) -> None:
        with pipe, suppress(OSError):  # EIO: nobody has the other end of the terminal any more.
            while data := os.read(pipe.fileno(), 65_536):
                self._times.append(time.monotonic())
                texts.append(data)

    def ended(self) -> tuple[str, str, float]:
        """Return stdout, stderr, and the longest silence, once the process has ended."""
        for thread in self._threads:
            thread.join()
        stdout, stderr = (b"".join(texts).decode() for texts in self._texts)
        return stdout, stderr, _longest([*sorted(self._times), time.monotonic()])


def _until_ready(stderr: IO[str]) -> tuple[list[str], float]:
    """Read the broker's log up to the line that says so; the pipe holds all that comes after."""
    lines: list[str] = []
    times = [time.monotonic()]
    for line in stderr:
        lines.append(line)
        times.append(time.monotonic())
        if _READY in line:
            return lines, _longest(times)
    raise AssertionError("".join(lines))


def _longest(times: list[float]) -> float:
    return max(after - before for before, after in itertools.pairwise(times))


def _cpu_of(pid: int) -> float:
    """Return the CPU time of a running process and of its children that have ended, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _cpu_of_children() -> float:
    """Return the CPU time of all children of this process that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
