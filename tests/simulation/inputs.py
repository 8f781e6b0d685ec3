"""Everything that product code asks of the machine, answered by the simulation instead.

Time, random numbers, the process id and the machine's address. Disks and the event loop's time are
handed in where the code has a place for that.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from types import ModuleType
from unittest import mock

from mqlake.client import identity
from mqlake.client import instance as instance_module
from mqlake.remoting.connection import Peer
from mqlake.storage import clock
from mqlake.store import message_store
from mqlake.store.loop import service_task
from tests.patience import usual_connections
from tests.simulation.loop import SimulatedLoop
from tests.simulation.process import CURRENT

EPOCH = 1_700_000_000_000
"""Milliseconds since 1970 at which every run begins."""
_PID = 4711


class LoopClock:
    """The simulated time; `mqlake.storage.clock.Clock`."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def milliseconds(self) -> int:
        return EPOCH + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()


class _Time:
    """Stands for the module `time` in the clock."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def time_ns(self) -> int:
        return EPOCH * 1_000_000 + int(self._loop.time() * 1e9)

    def monotonic(self) -> float:
        return self._loop.time()


class _NoThreads:
    """Stands for the threads of a store: the simulated loop runs their jobs."""

    def shutdown(self) -> None:
        pass


@contextmanager
def replaced(loop: SimulatedLoop, seed: str, *, intervals: dict[str, float]) -> Iterator[None]:
    """Replace the hidden inputs of product code while the block runs.

    Args:
        intervals: seconds, of constants that the product has no setting for.
    """
    with ExitStack() as undo:
        put = undo.enter_context
        put(usual_connections())
        put(mock.patch.object(clock, "time", _Time(loop)))
        put(mock.patch.object(os, "getpid", return_value=_PID))
        dice = random.Random(f"{seed}/secrets")
        put(mock.patch.object(os, "urandom", dice.randbytes))
        put(mock.patch.object(identity, "local_address", _own_address))
        put(mock.patch.object(message_store, "disk_threads", _NoThreads))
        put(mock.patch.object(service_task, "LOOK_INTERVAL", intervals["look"]))
        put(mock.patch.object(instance_module, "ROUTE_INTERVAL", intervals["routes"]))
        put(mock.patch.object(instance_module, "HEARTBEAT_INTERVAL", intervals["heartbeats"]))
        put(mock.patch.object(Peer, "__hash__", _number_of))
        for module in _measuring(len(sys.modules)):
            put(mock.patch.object(module, "perf_counter", loop.perf_counter))
        undo.callback(random.setstate, random.getstate())
        random.seed(f"{seed}/product")
        yield


def _own_address() -> str:
    process = CURRENT.get()
    assert process is not None
    return process.machine


def _number_of(peer: Peer) -> int:
    """Return a number of a connection that does not depend on its address in memory."""
    number: int | None = peer.__dict__.get("number")
    if number is None:
        number = peer.__dict__["number"] = peer._shared.loop.number()  # type: ignore[attr-defined]
    return number


@cache
def _measuring(_: int) -> list[ModuleType]:
    """Return the product's modules that measure how long code takes, of so many modules."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("mqlake.") and getattr(module, "perf_counter", None) is time.perf_counter
    ]
