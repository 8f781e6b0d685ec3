"""The slow machine itself: what it draws, and that every kind of call asks it for a delay."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pytest

from mqlake.store.loop import dispatching, service_task
from tests.forked import in_child
from tests.slow_machine import world
from tests.slow_machine.calls import late_dispatch, replace_calls
from tests.slow_machine.drawn import RANGES, Drawn
from tests.slow_machine.processes import pause_processes
from tests.slow_machine.world import World


def test_a_seed_and_a_test_decide_the_delays() -> None:
    def delays(seed: int, name: str) -> list[float]:
        drawn = Drawn(seed, name)
        return [drawn.delay(kind) for _ in range(3000) for kind in RANGES]

    names = [f"test_{number}" for number in range(200)]
    assert delays(1, "test_0") == delays(1, "test_0")
    assert len({tuple(delays(seed, "test_0")) for seed in range(20)}) > 10
    assert all(sum(delays(1, name)) < 10 for name in names)
    text = "\n".join(str(Drawn(1, name)) for name in names)
    assert all(f"{kind}: " in text for kind in ("dispatch", "sleeps", *RANGES))


def _called(path: Path) -> list[str]:
    """Return the kinds of delay that were asked for, in a process whose calls are replaced."""
    asked: set[str] = set()

    def delay(kind: str) -> float:
        asked.add(kind)
        return 0.001

    replace_calls(delay, World())
    with path.open("wb") as file:
        os.fsync(file.fileno())
    worked = Event()
    Thread(target=worked.set).start()
    assert worked.wait(60)
    with ThreadPoolExecutor() as pool:
        assert pool.submit(abs, -1).result(60) == 1

    async def connect() -> None:
        accepted = asyncio.Event()

        async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set()
            writer.close()

        async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            await accepted.wait()
            writer.close()

    asyncio.run(connect())
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked.discard("connect")
        socket.create_connection(server.getsockname()).close()
    return sorted(asked)


def test_all_kinds_of_calls_are_delayed(tmp_path: Path) -> None:
    found = in_child(lambda: _called(tmp_path / "file"))
    assert found == "['accept', 'connect', 'event loop', 'stall', 'sync', 'thread']"


def _rounds_during_a_sleep(*, is_frozen: bool) -> int:
    """Return how many rounds an event loop makes while a test sleeps for 0.2 s."""
    frozen, rounds = World(), 0
    replace_calls(lambda _: 0.0, frozen)
    frozen.begin(is_frozen_by_sleeps=is_frozen)

    async def test() -> None:
        loop = asyncio.get_running_loop()

        def work() -> None:
            nonlocal rounds
            rounds += 1
            loop.call_soon(work)

        work()
        await asyncio.sleep(0.2)

    asyncio.run(test())
    return rounds


@pytest.mark.parametrize("is_frozen", [False, True])
def test_nothing_happens_while_a_test_sleeps(
    is_frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sleeps of this folder are its own.
    monkeypatch.setattr(world, "_WAITING", ())
    rounds = int(in_child(lambda: _rounds_during_a_sleep(is_frozen=is_frozen)))
    assert (rounds < 20) == is_frozen


def test_dispatch_is_late_only_during_a_test() -> None:
    before = dispatching.TICK
    patches = late_dispatch(0.5)
    for patch in patches:
        patch.start()
    assert dispatching.TICK == service_task.LOOK_INTERVAL == 0.5
    for patch in patches:
        patch.stop()
    assert before == dispatching.TICK != 0.5


def _paused() -> int:
    """Return how often a process that this one started was stopped."""
    stops = 0

    def delay(kind: str) -> float:
        nonlocal stops
        stops += kind == "process"
        return 0.01

    pause_processes(delay)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as program:
        end = time.monotonic() + 30
        while stops < 3 and time.monotonic() < end:
            time.sleep(0.01)
        program.communicate(b"\n")
    assert program.returncode == 0
    return min(stops, 3)


def test_processes_are_stopped_and_continue() -> None:
    assert in_child(_paused) == "3"
