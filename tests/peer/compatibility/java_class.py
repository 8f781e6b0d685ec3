"""Classes of RocketMQ's tests in a JVM of their own, method by method, with a limit for each."""

from __future__ import annotations

import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from mqlake.spark.launch import QUICK_START
from tests.peer.java_build import build
from tests.peer.java_start import java
from tests.peer.rocketmq_store import OPENED

SOURCE = Path(__file__).parents[1] / "rocketmq_it"
PASSED, FAILED, IGNORED = "passed", "failed", "ignored"
LIMIT = 300.0
"""Seconds that a method, or the start of a class, may take."""

_PACKAGE = "org.apache.rocketmq.test."


@dataclass(frozen=True)
class Outcome:
    """How a method ended.

    Attributes:
        state: PASSED, FAILED or IGNORED.
        seconds: that it took.
        reason: the error in one line, empty if there is none.
    """

    state: str
    seconds: float = 0.0
    reason: str = ""


@dataclass
class Report:
    """What a class did.

    Attributes:
        outcomes: by the methods' names.
        changed: settings that its tests changed, as "server setting".
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)


class JavaClass:
    """A class of tests, and how its JVM is started.

    Args:
        name: without the package that all of them share; or several names, separated by commas, of
            classes whose methods have different names.
        directory: for the JVM's files.
        log: the file for what it prints.
        properties: system properties that name the servers; without them the tests start
            Java's brokers in their own process.
        act: carries out "stop" or "start" of the server of a name.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        log: Path,
        properties: Mapping[str, str] | None = None,
        act: Callable[[str, str], None] | None = None,
    ) -> None:
        program, jars = build(SOURCE).split(":")
        # The class path decides which BaseConf the tests find first: ours, or RocketMQ's.
        paths = (program, jars) if properties else (jars, program)
        values = {
            "java.io.tmpdir": directory,
            "user.home": directory,
            "user.timezone": "UTC",
            **(properties or {}),
        }
        packages = (*OPENED, "java.lang")
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in packages]
        given = [f"-D{key}={value}" for key, value in values.items()]
        options = ["-Xms128m", "-Xmx1g", *QUICK_START, *opens, *given]
        names = ",".join(_PACKAGE + each for each in name.split(","))
        self._command = java(":".join(paths), options, "mqlake.it.Methods", names)
        self._log = log
        self._act = act
        self._process: subprocess.Popen[str] | None = None
        self._is_killed = False

    def kill(self) -> None:
        """End the JVM, and start no other."""
        self._is_killed = True
        if self._process is not None:
            self._process.kill()

    def run(self, methods: Sequence[str] = (), limit: float = LIMIT) -> Report:
        """Run all methods, or these.

        A method that takes longer than `limit` seconds fails; another JVM runs the others.
        """
        report = Report()
        wanted = list(methods)
        while True:
            planned = self._once(wanted, limit, report)
            wanted = [each for each in planned if each not in report.outcomes]
            if not wanted or self._is_killed:
                return report

    def _once(self, methods: Sequence[str], limit: float, report: Report) -> list[str]:
        """Run one JVM to its end; return the methods that it was to run."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [*self._command, *methods],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._process = process
        try:
            planned = _Conversation(process, limit, report, self._act).held()
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
        if planned is None:
            raise RuntimeError(f"no tests in {self._command[-1]}: {self._log.read_text()[-2000:]}")
        return planned


class _Conversation:
    """What a JVM tells, and what is done about it."""

    def __init__(
        self,
        process: subprocess.Popen[str],
        limit: float,
        report: Report,
        act: Callable[[str, str], None] | None,
    ) -> None:
        self._process, self._limit, self._report, self._act = process, limit, report, act
        self._planned: list[str] = []
        self._now = ""
        """The method that runs."""
        self._broken = ""

    def held(self) -> list[str] | None:
        """Return the planned methods once the JVM has finished, has died, or hangs.

        None, if it ended before it could tell them.
        """
        lines: queue.Queue[str | None] = queue.Queue()
        assert self._process.stdout is not None
        reader = threading.Thread(target=_read, args=(self._process.stdout, lines), daemon=True)
        reader.start()
        until = time.monotonic() + self._limit
        while True:
            try:
                line = lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                self._process.send_signal(signal.SIGQUIT)  # where its threads are, to the log
                time.sleep(1)
                self._lost(f"takes longer than {self._limit:.0f} seconds")
                break
            if line is None:
                self._lost("the JVM ended")
                if not self._planned:
                    return None
                break
            words = line.rstrip("\n").split("\t")
            if words[0] == "finished":
                self._complete(self._broken or "did not run")
                break
            if words[0] in ("began", "ended"):
                until = time.monotonic() + self._limit
            self._hear(words)
        self._process.kill()
        reader.join()
        return self._planned

    def _hear(self, words: list[str]) -> None:
        match words:
            case ["planned", name]:
                self._planned.append(name)
            case ["began", name]:
                self._now = name
            case ["ended", name, state, seconds, reason]:
                self._report.outcomes[name] = Outcome(state, round(float(seconds), 1), reason)
                self._now = ""
            case ["broken", reason]:
                self._broken = reason
            case ["changed", server, setting, _]:
                self._report.changed.add(f"{server} {setting}")
            case ["refused", *_]:
                pass  # whether the test needs that setting, its outcome shows
            case ["stop" | "start" as verb, server]:
                self._obey(verb, server)
            case _:
                raise ValueError(f"a JVM of tests told {words}")

    def _obey(self, verb: str, server: str) -> None:
        assert self._act is not None
        assert self._process.stdin is not None
        self._act(verb, server)
        self._process.stdin.write("done\n")
        self._process.stdin.flush()

    def _lost(self, reason: str) -> None:
        """Blame the method that ran; the others may run in the next JVM."""
        if self._now:
            self._report.outcomes[self._now] = Outcome(FAILED, self._limit, reason)
        else:
            self._complete(self._broken or reason)

    def _complete(self, reason: str) -> None:
        for name in self._planned:
            self._report.outcomes.setdefault(name, Outcome(FAILED, 0.0, reason))


def _read(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)
