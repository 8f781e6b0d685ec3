"""Call the lane's kernel, with its buffers.

`python -m mqlake.broker.lane.kernel` fills the cache of kernels once, at set-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic_ns
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import ref

import numpy as np

from mqlake.broker.lane import layout
from mqlake.broker.lane.answers import LaneAnswers, lane_answers
from mqlake.broker.lane.compiled.arguments import KIND, LaneArguments
from mqlake.broker.lane.compiled.lites import HASHING, begin_hash
from mqlake.broker.lane.compiled.send_header import FIELDS
from mqlake.broker.lane.compiled.signatures import enter_key
from mqlake.broker.lane.compiled.topics import enter
from mqlake.broker.lane.compiled.turn import serve
from mqlake.broker.lane.pull_tables import PullArrays, PullTables
from mqlake.broker.lane.rests import Rests
from mqlake.broker.lane.topics import LaneTopics
from mqlake.broker.lane.user_table import UserArrays, UserTable
from mqlake.broker.state.lite.next_offsets import NextOffsets, NextTables
from mqlake.dispatch.compiled.put_sent import NUMBERS
from mqlake.kernels import jit
from mqlake.kernels.entry_point import INT, entry_point
from mqlake.kernels.kept_arguments import KeptArguments
from mqlake.remoting.limits import Limits

if TYPE_CHECKING:
    from mqlake.broker.send.send import UsualSends
    from mqlake.dispatch.batch import Bytes, Longs

KERNELS: Final = (serve, enter, enter_key, begin_hash)
"""Compiled, or loaded from the cache, before the first turn."""

_PROPERTIES: Final = 1 << 16
"""Bytes of the stored properties of one message."""
_SCRATCH: Final = 64 << 10
"""Bytes of a record, or of all records of a batch. The store accepts so many of any batch."""
_FIRST_SOCKETS: Final = 1024
_LENGTH: Final = 4
_WORD: Final = (1 << 64) - 1
_NOTHING: Bytes = np.frombuffer(b"", np.uint8)
_NO_LOG: Bytes = np.zeros(0, np.uint8)
_NO_ENDS: Longs = np.zeros(0, np.int64)
_NO_OFFSETS: Final = NextTables(NextOffsets().rows, np.zeros(1, np.int64), NextOffsets().rows)
_NO_ANSWERS: Final = LaneAnswers(_NOTHING, np.zeros(layout.PLACES + 4, np.int64))
"""For a kernel that serves nothing yet."""


class Answered(NamedTuple):
    """Answers that the caller sends.

    Attributes:
        connection: its number.
        answers: the frames.
        ends: the physical offset after each send that they answer.
        batches: whether each is a batch: 0 or 1.
    """

    connection: int
    answers: bytes
    ends: list[int]
    batches: list[int]


class LaneKernel:
    """The kernel, and what it keeps between two calls.

    Attributes:
        numbers: i8[STATES]: the numbers of `layout`, for quick access to one of them.
        answers: what answers one connection, or several if it is withheld.
        is_usable: whether the answers have the form that the kernel writes.
        rests: the incomplete last frames of connections.
        times: i8[4, n]: sends by how long they took, and how many nanoseconds that was; of single
            messages, and of batches.
        first_times: the same, for quick access to one of them.
    """

    def __init__(
        self,
        usual: UsualSends | None,
        topics: LaneTopics,
        pulls: PullArrays,
        users: UserArrays,
        lite_seed: int = 0,
    ) -> None:
        self._state = np.zeros(layout.STATES, np.int64)
        self.numbers = self._state.data
        self._time = np.zeros(2, np.int64)
        self._events = np.zeros(layout.EVENT_WORDS * layout.MOST_EVENTS, np.int32)
        self._data: Bytes = np.zeros(layout.DATA_SIZE, np.uint8)
        self._room = self._data.data
        self._bytes: Bytes = np.zeros(layout.DATA_SIZE, np.uint8)
        self.answers: Bytes = np.zeros(layout.ANSWERS_SIZE, np.uint8)
        self._answers_room = self.answers.data
        self._withheld = np.zeros((5, layout.MOST_WITHHELD), np.int64)
        self._sends = np.zeros((2, layout.MOST_SENDS), np.int64)
        self.times = np.zeros((4, len(layout.BINS) + 1), np.int64)
        self.first_times = self.times.data
        self._starts, self._lengths = np.zeros(FIELDS, np.int64), np.zeros(FIELDS, np.int64)
        self._properties: Bytes = np.zeros(_PROPERTIES, np.uint8)
        self._message = np.zeros(NUMBERS, np.int64)
        self._scratch: Bytes = np.zeros(_SCRATCH, np.uint8)
        self._route: Bytes = np.zeros(layout.ROUTE_SIZE, np.uint8)
        self._hosts: Bytes = np.zeros(_FIRST_SOCKETS * 8, np.uint8)
        self._seats = np.zeros((layout.SEAT_ROWS, _FIRST_SOCKETS), np.int64)
        self._seats[layout.READS, layout.BYTES] = layout.BY_CALLER
        self._hashing: Bytes = np.zeros(HASHING, np.uint8)
        begin_hash(self._hashing, np.frombuffer(lite_seed.to_bytes(8), np.uint8))
        self.rests = Rests(self.numbers)
        for place, array in (
            (layout.EVENTS_AT, self._events),
            (layout.DATA_AT, self._data),
            (layout.ANSWERS_AT, self.answers),
            (layout.TIME_AT, self._time),
        ):
            self._state[place] = array.ctypes.data
        self._serve: Callable[[int], int] = entry_point(serve, INT)
        self._for_sockets, self._for_bytes = KeptArguments(KIND), KeptArguments(KIND)
        self._texts, self._most, self._own = _NO_ANSWERS, np.zeros(4, np.int64), _NOTHING
        self._topics, self._pulls, self._users = topics, pulls, users
        self.is_usable = False
        if usual is not None:
            self.change(usual)
        self._bind()

    # Connections

    def enter(self, socket: int, host: bytes, rest: bytes, *, is_encrypted: bool = False) -> None:
        """Read a connection from now on.

        Args:
            rest: what was received of its next frame; `rests` must have room for it.
            is_encrypted: whether the caller receives and sends.
        """
        if socket >= self._seats.shape[1]:
            self._grow(socket)
        self.rests.take(self._seats, socket)  # Of a connection that is closed.
        self._hosts[8 * socket : 8 * socket + 8] = np.frombuffer(host, np.uint8)
        reader = layout.BY_CALLER if is_encrypted else layout.BY_KERNEL
        self._seats[:, socket] = reader, 0, 0, 0, 0
        if rest:
            self.rests.keep(self._seats, socket, rest, monotonic_ns())

    def may_keep_rest(self, host: bytes) -> bool:
        """Return whether the rest of a connection with an address can be kept."""
        return self.rests.has_room(self._hosts, host)

    def _grow(self, socket: int) -> None:
        """Make room for connections up to this one, and more."""
        more = 2 * socket - self._seats.shape[1]
        added = np.zeros((layout.SEAT_ROWS, more), np.int64)
        self._seats = np.ascontiguousarray(np.append(self._seats, added, 1))
        self._hosts = np.append(self._hosts, np.zeros(8 * more, np.uint8))
        self._bind()

    def leave(self, socket: int) -> bytes:
        """Stop reading a connection; return what was received and not served."""
        self._seats[layout.READS, socket] = 0
        kept = self.rests.take(self._seats, socket)
        return kept + self.take() if self.numbers[layout.CONNECTION] == socket else kept

    def note_signer(self, socket: int, number: int) -> None:
        """Note who has signed the last request of a connection, by the number in the table.

        Args:
            socket: the connection's, or BYTES.
            number: 0 if it must be asked for.
        """
        self._seats[layout.SIGNED_BY, socket] = number

    def take_served(self, socket: int) -> int:
        """Return how many frames of a connection were served since the last call."""
        found, self._seats[layout.SERVED, socket] = int(self._seats[layout.SERVED, socket]), 0
        return found

    def last_read(self, socket: int) -> float:
        """Return when a connection was read last, in seconds of `time.monotonic`."""
        return float(self._seats[layout.ACTIVE, socket]) / 1e9

    # Settings

    def change(self, usual: UsualSends) -> None:
        """Serve sends by other settings from now on."""
        answers = lane_answers(usual.answers)
        self.is_usable = answers is not None
        if answers is not None:
            limits = Limits()
            most = layout.Most(
                limits.frame, limits.header, usual.longest_body, usual.longest_properties
            )
            self._own, self._most = np.frombuffer(usual.own, np.uint8), np.array(most, np.int64)
            self._texts = answers
            self._bind()

    def _bind(self) -> None:
        """Prepare the arguments of the kernel."""
        topics = self._topics
        self._log: Callable[[], Bytes | None] = ref(_NO_LOG)
        self._keep(
            LaneArguments(
                log=_NO_LOG,
                ends=_NO_ENDS,
                following=_NO_OFFSETS,
                data=self._data,
                state=self._state,
                time=self._time,
                events=self._events,
                seats=self._seats,
                rests=self.rests.data,
                rest_rows=self.rests.rows,
                own=self._own,
                most=self._most,
                starts=self._starts,
                lengths=self._lengths,
                properties=self._properties,
                message=self._message,
                scratch=self._scratch,
                route=self._route,
                hosts=self._hosts,
                answers=self.answers,
                texts=self._texts.texts,
                marks=self._texts.marks,
                withheld=self._withheld,
                sends=self._sends,
                slots=topics.slots,
                names=topics.names,
                numbers=topics.numbers,
                routes=topics.routes,
                seed=topics.seed,
                places=topics.places,
                hashing=self._hashing,
                times=self.times,
                pulls=self._pulls,
                users=self._users,
            )
        )

    def _keep(self, arguments: LaneArguments) -> None:
        self._for_sockets.keep(arguments)
        self._for_bytes.keep(arguments._replace(data=self._bytes))
        self._arguments = arguments

    def _renew(self, log: Bytes, ends: Longs, following: NextTables) -> None:
        """Let the kernel have these arrays of the store, if its last call had others."""
        known = self._arguments
        if (
            self._log() is not log
            or known.ends is not ends
            or known.following.rows is not following.rows
            or known.following.earlier is not following.earlier
        ):
            self._keep(known._replace(log=log, ends=ends, following=following))
            # A file that was deleted is not held any longer.
            self._log, self._arguments = ref(log), self._arguments._replace(log=_NO_LOG)

    # Calls

    def serve(self, log: Bytes, ends: Longs, following: NextTables) -> int:
        """Serve sends and pulls; return why that ends: see `layout`.

        Args:
            log: the file of the log to which records are appended.
            ends: see `QueueOffsets`.
            following: the next offsets of lite topics.
        """
        self._renew(log, ends, following)
        return self._serve(self._for_sockets.address)

    def serve_bytes(
        self, log: Bytes, ends: Longs, following: NextTables, data: bytes, host: bytes
    ) -> tuple[int, int]:
        """Serve sends that a caller has received; return (why that ends, bytes that were served).

        Args:
            data: at most DATA_SIZE bytes, which begin with a frame.
            host: the address that sent them, as records have it.
        """
        numbers = self.numbers
        kept = numbers[layout.CONNECTION], numbers[layout.POSITION], numbers[layout.RECEIVED]
        self._bytes[: len(data)] = np.frombuffer(data, np.uint8)
        self._hosts[:8] = np.frombuffer(host, np.uint8)
        numbers[layout.CONNECTION], numbers[layout.POSITION] = layout.BYTES, 0
        numbers[layout.RECEIVED] = len(data)
        self._renew(log, ends, following)
        reason = self._serve(self._for_bytes.address)
        position = numbers[layout.POSITION]
        numbers[layout.CONNECTION], numbers[layout.POSITION], numbers[layout.RECEIVED] = kept
        return reason, position

    def room(self) -> memoryview:
        """Return where the caller receives, before a call of `note_received`."""
        return self._room[self.numbers[layout.RECEIVED] :]

    def note_received(self, size: int) -> None:
        """Note that the caller has received so many bytes over the current connection."""
        numbers = self.numbers
        numbers[layout.RECEIVED] += size
        self._seats[layout.ACTIVE, numbers[layout.CONNECTION]] = monotonic_ns()

    def rest(self) -> bytes:
        """Return what was received and not served."""
        return self._data[self.numbers[layout.POSITION] : self.numbers[layout.RECEIVED]].tobytes()

    def take(self) -> bytes:
        """Return what was received and not served; it is the caller's now."""
        found = self.rest()
        self.numbers[layout.POSITION] = self.numbers[layout.RECEIVED] = 0
        return found

    def take_whole(self) -> bytes:
        """Return the whole frames that were received and not served, which are the caller's now.

        An incomplete one at the end is kept, if that is possible; otherwise it is returned, too.
        """
        numbers = self.numbers
        at_first, socket = numbers[layout.POSITION] == 0, numbers[layout.CONNECTION]
        data = self.take()
        end = _whole(data)
        rest = data[end:]
        if not rest or not self._seats[layout.READS, socket]:
            return data
        if not self.may_keep_rest(self._hosts[8 * socket : 8 * socket + 8].tobytes()):
            return data
        active = int(self._seats[layout.ACTIVE, socket])
        begun = numbers[layout.REST_BEGUN] if at_first and not end else active
        self.rests.keep(self._seats, socket, rest, begun)
        return data[:end]

    def lite_queue(self) -> tuple[str, int]:
        """Return the name of the queue whose next offset is unknown, and its hash."""
        at, size = self.numbers[layout.LITE_AT], self.numbers[layout.LITE_SIZE]
        name = self._properties[at : at + size].tobytes().decode()
        return name, self.numbers[layout.LITE_HASH] & _WORD

    def unsent(self) -> bytes:
        """Return the answers that were not accepted."""
        return self.answers[
            self.numbers[layout.UNSENT_AT] : self.numbers[layout.UNSENT_END]
        ].tobytes()

    def sealed(self) -> list[tuple[int, bytes]]:
        """Return the answers that the caller encrypts, with the numbers of their connections."""
        rows = self._withheld[: layout.FIRST_SEND, : self.numbers[layout.WITHHELD]].T.tolist()
        data = self._answers_room
        return [(connection, bytes(data[begin:end])) for connection, begin, end in rows]

    def withheld(self) -> Iterator[Answered]:
        """Return the answers that the caller withholds, in the order of the log."""
        for row in self._withheld[:, : self.numbers[layout.WITHHELD]].T.tolist():
            connection, begin, end, first, count = row
            ends, batches = self._sends[:, first : first + count].tolist()
            yield Answered(connection, self.answers[begin:end].tobytes(), ends, batches)

    def note_taken(self) -> None:
        """Note that the caller has taken what was answered."""
        numbers = self.numbers
        numbers[layout.MESSAGES] = numbers[layout.WITHHELD] = numbers[layout.ANSWERED] = 0


def _whole(data: bytes) -> int:
    """Return where the incomplete frame at the end of received data begins.

    All of the data counts as whole if it has bytes that are no frame, or that the lane cannot keep.
    """
    at, end = 0, len(data)
    while end - at >= _LENGTH:
        size = _LENGTH + int.from_bytes(data[at : at + _LENGTH])
        if size > layout.LONGEST_FRAME or size < 2 * _LENGTH:
            return end
        if size > end - at:
            break
        at += size
    return at


def load_kernel(
    usual: UsualSends, topics: LaneTopics, pulls: PullArrays, users: UserArrays, lite_seed: int
) -> LaneKernel:
    """Load the kernel, and make one."""
    load()
    return LaneKernel(usual, topics, pulls, users, lite_seed)


def load() -> None:
    """Load the kernels from the cache; if they are not there, another process compiles them."""
    jit.compile_elsewhere(KERNELS, __spec__.name)
    call_each()


def call_each() -> None:
    """Call each kernel once, without a connection; compile those that are not in the cache."""
    topics, users = LaneTopics(), UserTable()
    topics.add("T", 1, b"")
    users.add("U", "")
    # Its time is over before it asks for connections.
    pulls = PullTables(np.zeros((1, 3), np.int64), users).arrays
    kernel = LaneKernel(None, topics, pulls, users.arrays(topics.permissions))
    kernel.serve(_NO_LOG, _NO_ENDS, _NO_OFFSETS)


if __name__ == "__main__":
    call_each()
