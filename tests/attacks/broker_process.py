"""A broker under attack: `mqlake broker` in a process of its own, with a probe in its event loop.

    with attacked(tmp_path, "Close every connection at once") as attack:
        ...  # attack `attack.address`
    attack.toll.check()

Meanwhile, a well-behaved client continues to send and pull, in a third process.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import signal
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from mqlake.namesrv.settings import NamesrvSettings
from mqlake.programs import broker, serve
from tests.attacks.honest_client import HonestClient, Service
from tests.attacks.probe import Probe
from tests.programs.forked import Forked, ForkedBroker, be_broker
from tests.programs.processes import BrokerProcess

Names = Mapping[str, int]

MEMORY = 512 << 20
"""Bytes that a broker may have in memory under any attack."""
LONGEST_STALL = "ATTACK_LONGEST_STALL"
"""The variable of the environment with the seconds for which nothing may hold the event loop."""
TOLLS = "ATTACK_TOLLS"
"""The variable with the file to which every attack adds what it cost."""
_STALL = "1"
"""Without it: ten times the goal, since a busy machine takes longer for the same work, also in
processor time: processes share caches, and threads spin for locks of the kernel."""

_SETTINGS = {
    "mappedFileSizeCommitLog": 64 << 20,
    "mappedFileSizeConsumeQueue": 200_000,
    "maxMessageSize": 4 << 20,
}
_RESET_PEAK = "5"
"""Written to `clear_refs` it makes the peak what is in memory now."""


class Toll(NamedTuple):
    """What an attack cost.

    Attributes:
        title: what the attacker does, as docs/reliability.md shows it.
        stall: longest time in seconds that the loop was held, by processor time of its thread.
        wall: the same by wall time; only to be looked at, since a busy machine lengthens it.
        peak: most bytes in memory (RSS) during the attack.
        before, after: bytes in memory before it began, and when it was over.
        service: what became of the well-behaved client's requests.
    """

    title: str
    stall: float
    wall: float
    peak: int
    before: int
    after: int
    service: Service

    def check(self, memory: int = MEMORY) -> None:
        """See that nobody else noticed the attack."""
        if (tolls := os.environ.get(TOLLS)) is not None:
            self._tell(Path(tolls))
        assert not self.service.failures, self
        assert self.service.answers, self
        assert self.stall < float(os.environ.get(LONGEST_STALL, _STALL)), self
        assert self.peak < memory, self

    def _tell(self, path: Path) -> None:
        line = (self.title, self.stall, self.peak, self.service.answers, self.service.slowest)
        with path.open("a") as file:
            file.write(f"{json.dumps(line)}\n")


class Attack:
    """A broker that runs, with a well-behaved client beside it.

    Attributes:
        process: the broker.
        address: where it listens, "ip:port".
        toll: what the attack cost; there once the block of `attacked` has ended.
    """

    toll: Toll

    def __init__(self, process: BrokerProcess, probe: Probe) -> None:
        self.process, self.probe = process, probe
        self.address = process.address

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def name_server_port(self) -> int:
        """The port of the name server, which runs in the same event loop."""
        return int(self.process.name_server.rpartition(":")[2])

    def resident(self) -> int:
        """Return the bytes that the broker has in memory now."""
        return self._status("VmRSS")

    def _status(self, name: str) -> int:
        status = Path(f"/proc/{self.process.process.pid}/status").read_text()
        return int(status.split(f"{name}:")[1].split()[0]) << 10

    def begin(self) -> None:
        """Measure from now on."""
        Path(f"/proc/{self.process.process.pid}/clear_refs").write_text(_RESET_PEAK)
        self.probe.reset()
        self.probe.settle()
        self._before = self.resident()

    def end(self, title: str, honest: HonestClient) -> None:
        """Take the toll of the attack with this title."""
        figures = self.probe.settle()
        service = honest.stop()
        peak, after = self._status("VmHWM"), self.resident()
        self.toll = Toll(title, figures.stall, figures.wall, peak, self._before, after, service)


class _Probed(ForkedBroker):
    """A broker with a probe in its loop."""

    def __init__(
        self, store: Path, log: Path, settings: Mapping[str, object], probe: Probe, names: Names
    ) -> None:
        self.probe, self._names = probe, names
        super().__init__(store, log, settings)

    def fork(self, words: list[str]) -> Forked:
        return Forked(_be_probed, words, self.probe.path, self.log, self._names)


@contextmanager
def attacked(
    directory: Path, title: str, names: Names | None = None, **settings: object
) -> Generator[Attack]:
    """Run a broker and its well-behaved client until the block ends, then take the toll.

    Args:
        directory: for the store, the logs and the probe's figures.
        title: what the attacker does, for readers of docs/reliability.md: an imperative sentence.
        names: settings of the name server, which `broker.conf` does not have.
        settings: under the names of `broker.conf`.
    """
    with _file_in_memory(directory) as path:
        chosen = {**_SETTINGS, **settings}
        process = _Probed(directory / "store", directory / "log", chosen, Probe(path), names or {})
        yield from _attacked(directory, process, title)


@contextmanager
def _file_in_memory(directory: Path) -> Generator[Path]:
    """Yield an empty file that no disk delays, if the system has such; else one in `directory`.

    To write a page of a file that is mapped may take seconds while the disk is busy.
    """
    memory = Path("/dev/shm")
    with NamedTemporaryFile(dir=memory if memory.is_dir() else directory) as file:
        yield Path(file.name)


def _attacked(directory: Path, process: _Probed, title: str) -> Generator[Attack]:
    try:
        with HonestClient(process.address, directory / "honest.log") as honest:
            attack = Attack(process, process.probe)
            attack.begin()
            yield attack
            attack.end(title, honest)
        assert process.stop() == 0, process.log.read_text()
    except TimeoutError as hang:
        process.process.send_signal(signal.SIGUSR1)
        time.sleep(1)
        raise AssertionError(f"{hang}; what it did: {process.log.read_text()}") from hang
    finally:
        process.kill()


def _be_probed(words: list[str], path: Path, log: Path, names: Names) -> None:
    """Be `mqlake`, with a probe in its event loop.

    Args:
        words: the arguments of `mqlake`.
        path: the probe's file.
        log: gets what it logs.
        names: settings of the name server.
    """
    faulthandler.register(signal.SIGUSR1)
    factory = serve.loop_factory() or asyncio.new_event_loop
    probe = Probe(path)

    def make_loop() -> asyncio.AbstractEventLoop:
        loop = factory()
        probe.watch(loop)
        return loop

    serve.loop_factory = lambda: make_loop
    broker.NamesrvSettings = partial(NamesrvSettings, **names)
    be_broker(words, log)
