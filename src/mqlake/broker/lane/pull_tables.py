"""The tables that the kernel of pulls reads: decisions by header, topics, queues."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mqlake.broker.lane import pull_layout as layout
from mqlake.broker.lane.pull_texts import GappedText
from mqlake.broker.lane.user_table import Permissions, UserTable
from mqlake.broker.pull.commits import GroupTopic

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Ints, Longs
    from mqlake.protocol.command import Command

MOST_DECISIONS: Final = 2048
"""Headers whose decision is kept. Beyond it, all are dropped."""
MOST_QUEUES: Final = 1 << 15
_SLOTS: Final = 4 * MOST_DECISIONS


class PullArrays(NamedTuple):
    """The arrays of the kernel.

    Attributes:
        state: i8[STATES]: see `pull_layout`, as for the columns of the others.
        slots: i4[n], a hash table of the numbers of decisions plus 1.
        keys, sizes: u1[n], in rows of KEY_SIZE; i8[n]: the key of each decision, and its length.
        seed: of the hash table: unknown to those who send headers.
        decisions: i8[n, DECISION_COLUMNS].
        codes: i8[n, MOST_TAGS], the tags codes of each decision, ascending.
        texts, parts: u1[n], in rows of ANSWER_SIZE; i8[n, GAPS + 1, 4]: the header of the answers
            to the pulls of each decision without its numbers: see `GappedText.parts`.
        names, name_sizes: u1[n], in rows of NAME_SIZE; i8[n]: the names of topics.
        queues: i8[n, QUEUE_COLUMNS].
        segments: see `MappedFiles`.
        key, places, numbers: what was read of a header: see `read_pull`.
        answered: i8[NUMBERS], the numbers of an answer.
        signed, signed_parts: the same for the text that is signed of these pulls.
        users, user_keys, user_text: numbers, keys and text of `UserArrays`.
        permissions: of each decision: see `Permissions`.
        targets: i8[MOST_MESSAGES, 3], the segment, the position and the size of each record.
        notes: i8[MOST_NOTES, 6], what was served.
    """

    state: Longs
    slots: Ints
    keys: Bytes
    sizes: Longs
    seed: np.uint64
    decisions: Longs
    codes: Longs
    texts: Bytes
    parts: Longs
    names: Bytes
    name_sizes: Longs
    queues: Longs
    segments: Longs
    key: Bytes
    places: Longs
    numbers: Longs
    answered: Longs
    targets: Longs
    notes: Longs
    signed: Bytes
    signed_parts: Longs
    users: Longs
    user_keys: Bytes
    user_text: Bytes
    permissions: Bytes


class AcceptedPulls(NamedTuple):
    """Pulls of one header that the ordinary path accepts.

    Attributes:
        of: their group and topic.
        commits: whether they commit an offset.
        queues: of the topic.
        messages, bytes: the limits of an answer.
        entries: that one pull examines.
        codes: tags codes; None if all messages are selected.
        answer: the header of an answer.
        request: one of them.
        signed: the text that is signed; None if these pulls have no signature.
    """

    of: GroupTopic
    commits: bool
    queues: int
    messages: int
    bytes: int
    entries: int
    codes: list[int] | None
    answer: GappedText
    request: Command
    signed: GappedText | None


class PullTables:
    """Decisions, and the topics and queues that they are about.

    Attributes:
        arrays: for the kernel.
        accepted: each decision; None if its pulls are left to the ordinary path.
        queues: the topic and the id of each queue.
        permissions: which users may make the pulls of which decision.
    """

    def __init__(self, segments: Longs, users: UserTable) -> None:
        self.accepted: list[AcceptedPulls | None] = []
        self.queues: list[tuple[str, int]] = []
        self._topics: dict[tuple[str, int], tuple[int, int]] = {}
        self.permissions = Permissions(MOST_DECISIONS)
        known = users.arrays(self.permissions)
        self.arrays = PullArrays(
            state=_longs(layout.STATES),
            slots=np.zeros(_SLOTS, np.int32),
            keys=_bytes(MOST_DECISIONS * layout.KEY_SIZE),
            sizes=_longs(MOST_DECISIONS),
            seed=np.uint64(secrets.randbits(64)),
            decisions=_rows(MOST_DECISIONS, layout.DECISION_COLUMNS),
            codes=_rows(MOST_DECISIONS, layout.MOST_TAGS),
            texts=_bytes(MOST_DECISIONS * layout.ANSWER_SIZE),
            parts=np.zeros((MOST_DECISIONS, layout.GAPS + 1, 4), np.int64),
            names=_bytes(MOST_DECISIONS * layout.NAME_SIZE),
            name_sizes=_longs(MOST_DECISIONS),
            queues=_rows(MOST_QUEUES, layout.QUEUE_COLUMNS),
            segments=segments,
            key=_bytes(layout.KEY_SIZE),
            places=_longs(layout.PLACES),
            numbers=_longs(layout.NUMBERS),
            answered=_longs(layout.NUMBERS),
            targets=_rows(layout.MOST_MESSAGES, 3),
            notes=_rows(layout.MOST_NOTES, 6),
            signed=_bytes(MOST_DECISIONS * layout.ANSWER_SIZE),
            signed_parts=np.zeros((MOST_DECISIONS, layout.GAPS + 1, 4), np.int64),
            users=known.numbers,
            user_keys=known.keys,
            user_text=known.text,
            permissions=known.permissions,
        )

    def clear(self) -> None:
        """Forget everything."""
        self.permissions.forget()
        self.arrays.slots[:] = 0
        self.arrays.queues[: len(self.queues)] = 0
        self.accepted.clear()
        self.queues.clear()
        self._topics.clear()

    def has_room(self, accepted: AcceptedPulls | None) -> bool:
        """Return whether there is room for one more decision."""
        queues = accepted.queues if accepted is not None else 0
        return len(self.accepted) < MOST_DECISIONS and len(self.queues) + queues <= MOST_QUEUES

    def add(self, accepted: AcceptedPulls | None) -> int:
        """Add a decision, for which there is room; return its number."""
        number, arrays = len(self.accepted), self.arrays
        self.accepted.append(accepted)
        row = arrays.decisions[number]
        row[:] = 0
        if accepted is None:
            return number
        topic, first = self._topic(accepted.of.topic, accepted.queues)
        codes = accepted.codes
        row[layout.IS_ACCEPTED], row[layout.TOPIC] = 1, topic
        row[layout.FIRST_QUEUE], row[layout.QUEUES] = first, accepted.queues
        row[layout.MESSAGES], row[layout.BYTES] = accepted.messages, accepted.bytes
        row[layout.ENTRIES] = accepted.entries
        row[layout.TAGS] = -1 if codes is None else len(codes)
        if codes:
            arrays.codes[number, : len(codes)] = codes
        _enter(accepted.answer, number, arrays.texts, arrays.parts)
        if accepted.signed is not None:
            row[layout.IS_SIGNED] = 1
            _enter(accepted.signed, number, arrays.signed, arrays.signed_parts)
        return number

    def _topic(self, name: str, queues: int) -> tuple[int, int]:
        """Return the number of a topic, and that of its first queue."""
        found = self._topics.get((name, queues))
        if found is None:
            number, data, arrays = len(self._topics), name.encode(), self.arrays
            at = number * layout.NAME_SIZE + layout.NAME_AT
            arrays.names[at : at + len(data)] = np.frombuffer(data, np.uint8)
            arrays.name_sizes[number] = len(data)
            found = self._topics[name, queues] = number, len(self.queues)
            arrays.queues[len(self.queues) : len(self.queues) + queues] = 0
            self.queues += [(name, queue_id) for queue_id in range(queues)]
        return found


def _enter(text: GappedText, row: int, texts: Bytes, parts: Longs) -> None:
    data, at = text.text, row * layout.ANSWER_SIZE
    texts[at : at + len(data)] = np.frombuffer(data, np.uint8)
    parts[row] = text.parts()


def _longs(count: int) -> Longs:
    return np.zeros(count, np.int64)


def _rows(count: int, columns: int) -> Longs:
    return np.zeros((count, columns), np.int64)


def _bytes(count: int) -> Bytes:
    return np.zeros(count, np.uint8)
