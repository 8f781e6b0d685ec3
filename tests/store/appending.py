"""An appender over a new log, and a clock that says what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from mqlake.formats.record import Record, decode
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.append.appender import Appender
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from mqlake.store.live_settings import current
from mqlake.store.log.owned_log import open_owned_log
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.settings import StoreSettings
from tests.crash.disk import RecordedDisk

NOW = 1_800_000_000_000
SIZE = 1 << 16


@dataclass
class SetClock:
    """`mqlake.storage.clock.Clock`."""

    now: int = NOW

    def milliseconds(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


@dataclass
class Appending:
    """A log, and what appends to it."""

    settings: StoreSettings = field(
        default_factory=lambda: StoreSettings(mapped_file_size_commit_log=SIZE)
    )
    disk: OwnedDirectory = field(default_factory=RecordedDisk)
    clock: SetClock = field(default_factory=SetClock)
    offsets: QueueOffsets = field(default_factory=QueueOffsets)

    def __post_init__(self) -> None:
        self.log = open_owned_log(self.disk, self.settings.mapped_file_size_commit_log)
        self.log.recover_to(0)
        self.appender = Appender(self.log, self.offsets, current(self.settings), self.clock)

    def in_python(self) -> Self:
        """Append without the compiled functions from now on."""
        self.appender.packed._kernel = None
        return self

    def put(self, *messages: Message) -> list[PutResult]:
        """Put messages one by one."""
        return [self.appender.put(message) for message in messages]

    def put_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Put messages in one call."""
        return self.appender.put_many(messages)

    def record(self, result: PutResult) -> Record:
        """Return what was written."""
        return decode(self.log.read(result.physical_offset, result.size))

    def state(self) -> tuple[int, dict[tuple[str, int], int], bytes]:
        """Return all that a put may change: end, queue offsets, bytes before the end."""
        files = [
            bytes(self.log.read(segment.base, min(segment.end, self.log.end) - segment.base))
            for segment in self.log.segments
        ]
        return self.log.end, dict(self.offsets), b"".join(files)


def message(**changes: object) -> Message:
    """Return a message of topic T."""
    return Message(**({"topic": "T", "body": b"body"} | changes))  # type: ignore[arg-type]


def optimized(kernel: Any) -> list[str]:
    """Return LLVM's optimized code of each signature of a kernel.

    Numba's own `inspect_llvm` shows none of what was loaded from a cache.
    """
    made = kernel.overloads.values()
    assert made, "not compiled yet"
    return [str(one.library._get_module_for_linking()) for one in made]
