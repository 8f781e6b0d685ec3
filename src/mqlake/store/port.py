"""What a broker needs from a store (docs/architecture.md, "A broker knows the store by its port").

`MessageStore` implements it. A broker imports from `mqlake.store` only this module and modules of
plain values: `tests/broker/test_store_port.py` checks that. Upstream: `MessageStore`.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Protocol

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.drafts import Drafts
from mqlake.errors import StoreError
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.incarnations import EndedIncarnations
from mqlake.formats.record import Record
from mqlake.metrics.counts import Counts, Histograms
from mqlake.metrics.histogram import Histogram
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutResult
from mqlake.store.config.config_entries import GroupTable, TopicMappingTable, TopicTable
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable
from mqlake.store.config.delay_offsets import DelayOffsetTable
from mqlake.store.config.keeping import KeptTable
from mqlake.store.delivery.after_flush import AfterFlush
from mqlake.store.delivery.transactions import CheckBack, Ended, EndStatus
from mqlake.store.log.scan import Head
from mqlake.store.log_copying import LogCopying
from mqlake.store.queues.time_search import Boundary
from mqlake.store.reads.arrivals import Arrivals, Listener
from mqlake.store.reads.copied_ahead import CopiedAhead, CopiedMessages, CopyBuffers
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.recovery.log_walk import Progress
from mqlake.store.replication.copies import Copies, Copy
from mqlake.store.replication.cut_log import cut_log
from mqlake.store.replication.epochs import Epochs, common_end
from mqlake.store.replication.in_sync_set import InSyncSet
from mqlake.store.results import FoundOffsets, QueryBudget, QueueRange
from mqlake.store.services import Service
from mqlake.store.stored import Stored
from mqlake.store.watermarks import Watermarks

__all__ = [
    "AfterFlush",
    "Arrivals",
    "Boundary",
    "CheckBack",
    "ConfigTables",
    "CopiedAhead",
    "CopiedMessages",
    "Copies",
    "Copy",
    "CopyBuffers",
    "EndStatus",
    "Ended",
    "Epochs",
    "Head",
    "Health",
    "InSyncSet",
    "Incarnations",
    "KeptTable",
    "Listener",
    "LiveGetResult",
    "LogCopying",
    "Progress",
    "Reads",
    "Redelivery",
    "Retention",
    "Service",
    "Store",
    "Timers",
    "Transactions",
    "Watermarks",
    "common_end",
    "cut_log",
]


class Reads(Protocol):
    """Questions about messages and queues. No answer contains a message that is not confirmed.

    A topic that cannot be a directory name raises `FormatError`. An existing file that cannot be
    read raises `DiskError`.
    """

    @property
    def arrivals(self) -> Arrivals:
        """Notifies those who wait for messages of a topic."""
        ...

    # Queues

    @property
    def version(self) -> int:
        """A number that changes when the least or greatest offset of any queue may have changed."""
        ...

    def topics(self) -> list[str]:
        """Return the names of all topics that have a queue, sorted."""
        ...

    def queues(self, topic: str) -> list[int]:
        """Return the ids of a topic's queues, ascending."""
        ...

    def queue(self, topic: str, queue_id: int) -> QueueRange:
        """Return a queue's offsets; (0, 0) if it does not exist."""
        ...

    def entries(self, topic: str, queue_id: int, start: int, count: int) -> list[QueueEntry]:
        """Return up to `count` entries of a queue from an offset on; fewer at the end of a file."""
        ...

    def stored_bytes(self, topic: str, queue_id: int, start: int, end: int) -> int:
        """Return the bytes of the records between two queue offsets: see `LiveReads`."""
        ...

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_messages: int = 32,
        *,
        tags: str | None = None,
        max_bytes: int | None = None,
        crc: bool = True,
        exact: bool = True,
    ) -> LiveGetResult:
        """Return messages of a queue from an offset on: see `LiveReads.get`."""
        ...

    def copied(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_messages: int,
        max_bytes: int,
        tags: str | None = None,
    ) -> CopiedMessages | None:
        """Return what `get` would return, if it was found ahead: see `LiveReads.copied`."""
        ...

    @property
    def copies(self) -> CopyBuffers:
        """The records that were found and copied ahead."""
        ...

    def copied_by(
        self, topic: str, queue_id: int, offset: int, max_messages: int, tags: str | None = None
    ) -> CopiedAhead | None:
        """Return the copy that has messages from an offset on: see `LiveReads.copied_by`."""
        ...

    def warm_up(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_messages: int = 32,
        *,
        tags: str | None = None,
        crc: bool = True,
        exact: bool = True,
    ) -> Callable[[], object] | None:
        """Return a job that reads messages from the disk in any thread.

        None if `get` would not block.
        """
        ...

    def head_from(self, topic: str, queue_id: int, offset: int) -> Head | None:
        """Return the head of a queue's first message from a queue offset on, or None at its end."""
        ...

    def offset_by_time(
        self,
        topic: str,
        queue_id: int,
        milliseconds: int,
        boundary: Boundary | str = Boundary.LOWER,
    ) -> int:
        """Return the queue offset at a store time: see `Boundary`."""
        ...

    # Messages

    def record_at(self, physical_offset: int) -> Record | None:
        """Return the message that starts at a physical offset."""
        ...

    def raw_at(self, physical_offset: int, *, crc: bool = True) -> memoryview | None:
        """Return the bytes of the message that starts at a physical offset, not copied."""
        ...

    def search(
        self,
        topic: str,
        key: str,
        begin: int,
        end: int,
        max: int,  # noqa: A002
        index_type: str | None,
        budget: QueryBudget,
    ) -> Generator[None, None, FoundOffsets]:
        """Find the newest `max` messages with a key that were stored in [begin, end] (ms)."""
        ...

    @property
    def index_end(self) -> tuple[int, int]:
        """Store timestamp (ms) and physical offset of the last indexed record.

        (0, 0) without an indexed record.
        """
        ...


class ConfigTables(Protocol):
    """The tables in `config/`."""

    @property
    def topics(self) -> TopicTable:
        """The topics."""
        ...

    @property
    def groups(self) -> GroupTable:
        """The consumer groups."""
        ...

    @property
    def consumer_offsets(self) -> ConsumerOffsetTable:
        """The offsets of consumer groups."""
        ...

    @property
    def delay_offsets(self) -> DelayOffsetTable:
        """The delivery progress of each delay level."""
        ...

    @property
    def static_topics(self) -> TopicMappingTable:
        """The mappings of static topics."""
        ...


class Incarnations(KeptTable, Protocol):
    """Which records of a name that was deleted, and perhaps created again, are dead.

    A number is a physical offset: records before it are dead. 0 for a name that was never deleted.
    Compare it with the physical offset of a record, and not with another such number: a slave, or a
    store that has lost the table, may have derived a later one.
    """

    def before(self, topic: str) -> int:
        """Return the physical offset before which all records of a topic are dead."""
        ...

    def was_deleted(self, topic: str, physical_offset: int) -> bool:
        """Return whether a topic is known to have been deleted after a physical offset."""
        ...

    def group_before(self, group: str) -> int:
        """Return the physical offset before which all records of a group's state are dead."""
        ...

    def ended(self) -> EndedIncarnations:
        """Return a copy of the table."""
        ...

    def end_topic(self, topic: str, before: int, seen: int = 0) -> bool:
        """Let all records of a topic that has none in queues be dead before a physical offset.

        Return whether more are.

        Args:
            seen: the physical offset at which the log ended when the topic was deleted; 0 if that
                is unknown.
        """
        ...

    def end_group(self, group: str, physical_offset: int) -> bool:
        """Let all records of a group's state before a physical offset be dead.

        For a group that is deleted: `watermarks.end`. `Store.keep` makes it durable. The
        incarnation of a topic with queues is ended by `Store.remove_topic`.
        """
        ...


class Redelivery(Protocol):
    """Accepted messages that cannot be put where they were sent to."""

    @property
    def set_aside(self) -> int:
        """The number of them since the start."""
        ...

    @property
    def moved(self) -> int:
        """The number of messages that were put to another queue since the start: their topic has
        lost the queue that they were sent to.
        """
        ...

    @property
    def dead(self) -> int:
        """The number of messages that were dropped since the start: their topic was deleted while
        they waited.
        """
        ...

    def put_aside(self, source: Stored, why: str) -> bool:
        """Put a message to the topic of undeliverable ones; return whether that is finished."""
        ...

    def note_missing(self, topic: str, queue_id: int, queue_offset: int) -> None:
        """Report a message for which the log no longer has a good record."""
        ...


class Timers(Protocol):
    """Messages that are delivered at their own delivery times."""

    @property
    def delivered_before(self) -> int:
        """Messages due before this time (ms) were delivered, if they were in the log at the last
        pass.
        """
        ...

    @property
    def behind(self) -> int:
        """How many messages of the queue are not yet in the wheel."""
        ...

    @property
    def next_offset(self) -> int:
        """Queue offset of the first message that is not yet in the wheel."""
        ...

    @property
    def waiting(self) -> int:
        """How many messages wait in the wheel."""
        ...

    @property
    def waiting_by_topic(self) -> Mapping[str, int]:
        """How many messages wait for each topic."""
        ...

    @property
    def entered(self) -> Counts:
        """How many messages began to wait since the start, by topic."""
        ...

    @property
    def delivered(self) -> Counts:
        """How many messages were put to their topic since the start, by topic."""
        ...

    def overdue(self) -> int:
        """Return how many messages of the wheel are due."""
        ...

    def waiting_in(self, time: int) -> int:
        """Return how many messages wait for the slot of a time (ms)."""
        ...

    def checkpoint(self) -> bytes:
        """Return the delivery progress in the form for a slave."""
        ...

    def follow(self, checkpoint: bytes) -> None:
        """Adopt a master's delivery progress.

        Raises:
            FormatError: the bytes are not a checkpoint.
        """
        ...


class Transactions(Protocol):
    """Half messages, and how their transactions ended."""

    on_check: Callable[[CheckBack], None] | None
    """Called for each half message whose producer is to be asked; None asks nobody."""

    @property
    def waiting(self) -> int:
        """How many half messages have not ended."""
        ...

    @property
    def committed(self) -> Counts:
        """How many transactions were committed since the start, by topic."""
        ...

    @property
    def rolled_back(self) -> Counts:
        """How many transactions were rolled back since the start, by topic."""
        ...

    @property
    def durations(self) -> Histograms:
        """Milliseconds from when a message was made until its commit, by topic."""
        ...


class Retention(Protocol):
    """Files that need not be kept."""

    def clean(self) -> None:
        """Remove expired files of the log at the next check, at any hour."""
        ...

    def clean_queues(self) -> None:
        """Remove now the files of queues and index that point only before the log's start.

        Raises:
            DiskError: the system refused an operation.
        """
        ...


class Health(Protocol):
    """The failures of a store."""

    @property
    def services(self) -> Iterable[Service]:
        """The store's services."""
        ...

    @property
    def dispatch_failures(self) -> int:
        """The number of failed dispatches."""
        ...

    @property
    def not_writable(self) -> str | None:
        """Why no messages are accepted now; None if they are."""
        ...


class Store(Protocol):
    """A store that this process owns, for the tasks of one event loop.

    An append does not wait: it may be acknowledged once `confirm` has returned it. A refusal is
    also a result.
    """

    # Roles

    @property
    def clock(self) -> Clock:
        """The clock of everything in the store."""
        ...

    @property
    def directory(self) -> OwnedDirectory:
        """The directory of the store."""
        ...

    @property
    def watermarks(self) -> Watermarks:
        """How far the log is written, durable on this disk, confirmed and dispatched."""
        ...

    @property
    def sync_times(self) -> Histogram:
        """Seconds that syncs of the log's files took."""
        ...

    @property
    def reads(self) -> Reads:
        """Questions about messages and queues."""
        ...

    @property
    def config(self) -> ConfigTables:
        """Topics, consumer groups and their offsets."""
        ...

    @property
    def incarnations(self) -> Incarnations:
        """Which records of deleted topics and groups are dead."""
        ...

    @property
    def redelivery(self) -> Redelivery:
        """Messages that cannot be put to their topic."""
        ...

    @property
    def timers(self) -> Timers:
        """Messages with a delivery time."""
        ...

    @property
    def transactions(self) -> Transactions:
        """Transactions whose producers are to be asked."""
        ...

    @property
    def retention(self) -> Retention:
        """What removes files."""
        ...

    @property
    def health(self) -> Health:
        """Failures."""
        ...

    @property
    def copies(self) -> Copies:
        """Which part of the log slaves have."""
        ...

    @property
    def copying(self) -> LogCopying:
        """The bytes of the log, for slaves and from a master."""
        ...

    @property
    def failed(self) -> Future[StoreError]:
        """Done once the store's service task has ended, with the reason."""
        ...

    # Properties

    @property
    def was_closed_cleanly(self) -> bool:
        """Return whether the last process closed the store."""
        ...

    @property
    def largest_record(self) -> int:
        """Maximum size of one record, or of one batch of them, in bytes."""
        ...

    def queue_ends(self) -> Mapping[tuple[str, int], int]:
        """Return the next queue offset of each (topic, queue id); do not change it."""
        ...

    def dispatched_messages(self) -> int:
        """Return how many messages were dispatched since the start."""
        ...

    # Append

    def append_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages of any topics and queues."""
        ...

    def append_batch(self, batch: MessageBatch) -> PutResult:
        """Append all messages of a batch, or none."""
        ...

    def append_drafts(
        self,
        drafts: Drafts,
        topic: str,
        queue_ids: Sequence[int],
        born_host: str,
        *,
        whole: bool = False,
    ) -> int:
        """Append encoded messages; return how many; with `whole`, all or none."""
        ...

    def append_sent(
        self,
        topic: str,
        queue_id: int,
        born_host: str,
        data: bytes,
        properties: Bytes,
        numbers: Longs,
    ) -> tuple[int, int] | None:
        """Append one message of a client; return its physical and its queue offset.

        None if nothing was appended: the message is to be appended by `append_many`, which says
        what is wrong.

        Args:
            data, properties, numbers: as `mqlake.dispatch.plain_put.PutSent` says.
        """
        ...

    def append_again(self, message: Message, *, may_wait: bool = False) -> PutResult:
        """Append a message that was accepted before; `may_wait`: whether its delay counts."""
        ...

    def continue_delays(self) -> None:
        """Continue to deliver delayed messages at the positions in the table of delay offsets.

        For callers that have changed that table.
        """
        ...

    def append_half(self, message: Message) -> PutResult:
        """Append a half message, of the group in its PGROUP."""
        ...

    def append_end(
        self,
        physical_offset: int,
        queue_offset: int,
        group: str,
        *,
        commit: bool,
        is_answer: bool = False,
    ) -> Ended:
        """Commit the half message at these offsets, or roll it back."""
        ...

    async def confirm(self, results: Sequence[PutResult]) -> Sequence[PutResult]:
        """Return results of appends once they may be acknowledged.

        Messages that are not durable, or not in time, then have another status.
        """
        ...

    def catch_up(self) -> bool:
        """Dispatch what is confirmed, for one turn; return whether there was anything.

        Messages are acknowledged some milliseconds before they have their queue and index entries.
        """
        ...

    def sync_log(self) -> None:
        """Return once every message is durable and dispatched. It blocks the event loop.

        Raises:
            DiskError: the disk failed.
        """
        ...

    async def keep(self, table: KeptTable) -> None:
        """Return once the current content of a table of `config` is durable.

        Raises:
            StoreError: the disk refused it, or the store is being closed.
        """
        ...

    async def remove_topic(self, topic: str, before: int | None = None) -> None:
        """Remove a topic's queues, durably.

        Args:
            before: on a slave, the physical offset before which the master has deleted the topic:
                queues with later messages stay.

        Raises:
            StoreError: a sync failed, now or before.
            DiskError: the disk refused another operation; the same call completes it.
        """
        ...
