"""What a run leaves behind: tasks, sockets, objects, memory."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MODULES = ("mqlake.client", "mqlake.remoting.client")
_FDS = Path("/proc/self/fd")


class Leftovers:
    """Compares what there is now with what there was when this was made."""

    def __init__(self) -> None:
        self._tasks = asyncio.all_tasks()
        self._sockets = sockets()
        self._objects = objects()

    async def after(self, seconds: float) -> list[str]:
        """Return what is left once nothing is, or this time is over."""
        deadline = time.monotonic() + seconds
        while (found := self.find()) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # connections have no event for their end
        return found

    def find(self) -> list[str]:
        """Return what is left, one line each."""
        found = [f"a task is left: {task}" for task in asyncio.all_tasks() - self._tasks]
        if (more := sockets() - self._sockets) > 0:
            found.append(f"{more} sockets are left")
        for name, more in (objects() - self._objects).items():
            found.append(f"{more} objects of {name} are left")
        return found


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect no garbage: that of a whole test run takes processor time of its own."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def sockets() -> int:
    """Return how many sockets this process has open; 0 if that cannot be known here."""
    if not _FDS.exists():
        return 0
    count = 0
    for each in _FDS.iterdir():
        with suppress(OSError):
            count += str(each.readlink()).startswith("socket:")
    return count


def objects() -> Counter[str]:
    """Return how many objects of the client and its connections there are, by class."""
    gc.collect()
    found: Counter[str] = Counter()
    for each in gc.get_objects():
        module = str(type(each).__module__)  # of a class that has slots it may be a descriptor
        if module.startswith(_MODULES):
            found[f"{module}.{type(each).__qualname__}"] += 1
    return found


def resident() -> int:
    """Return the bytes of memory that this process has of its own; 0 if that cannot be known."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return int(status.split("RssAnon:")[1].split()[0]) << 10
