"""Settings of a live store, under the names and with the defaults of `broker.conf`.

Upstream: `MessageStoreConfig`, and of `BrokerConfig` what concerns the store. An attribute is the
name of `broker.conf` in Python's spelling: `flushDiskType` is `flush_disk_type`.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, cast

import msgspec

from mqlake.errors import FormatError, StoreError
from mqlake.formats import batch_consume_queue
from mqlake.formats.consume_queue import DEFAULT_DELAY_LEVELS_TEXT, DEFAULT_FILE_SIZE
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import (
    DEFAULT_MAX_ENTRIES,
    DEFAULT_SLOTS,
    ENTRY_SIZE,
    HEADER_SIZE,
    SLOT_SIZE,
)
from mqlake.store import java_properties
from mqlake.store.bounds import (
    INT_MAX,
    Count,
    CountOrNone,
    Delays,
    FileSize,
    Hours,
    Interval,
    IPAddress,
    Now,
    Pages,
    Pause,
    Percent,
    Port,
    Restart,
    Timeout,
    Within,
    check,
    refusal,
    secrets,
)


class FlushDiskType(Enum):
    """When a put is acknowledged."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    """Once it is in the page cache: it survives a process crash."""
    SYNC_FLUSH = "SYNC_FLUSH"
    """Once it is on the disk: it survives a power loss."""


class BrokerRole(Enum):
    """Whether this store accepts messages from producers."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"
    """It has the messages of its master, and accepts none itself."""


class StoreSettings(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How a store is written, flushed, recovered and trimmed.

    Sizes are bytes, times milliseconds, unless stated otherwise. Each field declares whether it may
    change in a running store (`Now`), or takes effect when the store is opened (`Restart`).
    """

    without_effect: ClassVar[Mapping[str, str]] = {}
    """Names that are accepted without a warning, and why they have no effect."""

    # Files
    mapped_file_size_commit_log: Restart[FileSize] = 1 << 30
    """The size of a commit-log file."""
    mapped_file_size_consume_queue: Restart[Annotated[int, Within(20, INT_MAX)]] = DEFAULT_FILE_SIZE
    """The size of a consume-queue file; an entry has 20 bytes."""
    mapper_file_size_batch_consume_queue: Restart[Annotated[int, Within(46, INT_MAX)]] = (
        batch_consume_queue.DEFAULT_FILE_SIZE
    )
    """The size of a batch consume-queue file; an entry has 46 bytes."""
    max_hash_slot_num: Restart[Annotated[int, Within(1, 100_000_000)]] = DEFAULT_SLOTS
    """The number of hash slots in an index file."""
    max_index_num: Restart[Annotated[int, Within(2, 100_000_000)]] = DEFAULT_MAX_ENTRIES
    """The number of entries for which an index file has room, including the unused entry 0. A file
    has at most 2147483647 bytes."""
    enable_lmq: Restart[bool] = False
    """Whether light queues are derived, which [lite topics](lite-topics.md) need. Switched off,
    those that exist are removed: they are derived again once it is switched on.
    """
    message_index_enable: Restart[bool] = True
    """Whether the index for queries by key is written."""
    index_dialect: Restart[Dialect] = Dialect.V5_5
    """The RocketMQ release in whose format a new store writes its index entries and its checkpoint.
    RocketMQ does not have this setting."""

    # Append
    broker_role: Restart[BrokerRole] = BrokerRole.ASYNC_MASTER
    """The role of the broker. `updateBrokerConfig` promotes or demotes a running broker at once."""
    broker_ip1: Restart[IPAddress] = msgspec.field(default="127.0.0.1", name="brokerIP1")
    """The address that clients are given for this machine; each message contains it (RocketMQ's
    default: the machine's own address)."""
    listen_port: Restart[Port] = 10911
    """The port to listen on, at least 3 for a broker; each message contains it."""
    max_message_size: Now[Annotated[int, Within(1, 1 << 30)]] = 4 << 20
    """The maximum size of a message's body."""
    auto_message_version_on_topic_len: Now[bool] = True
    """Whether messages with topics longer than 127 bytes are written as V2 records. With `false`,
    they are refused."""
    os_page_cache_busy_time_out_mills: Now[Pause] = 1000
    """While an append takes longer than this, further sends are answered as busy."""
    enabled_append_prop_crc: Restart[bool] = msgspec.field(
        default=True, name="enabledAppendPropCRC"
    )
    """Whether the last property of each record contains a CRC of the record (RocketMQ's default:
    false)."""
    force_verify_prop_crc: Restart[bool] = msgspec.field(default=False, name="forceVerifyPropCRC")
    """Whether recovery ends the log at the first record whose CRC is missing or wrong."""

    # Flush
    flush_disk_type: Restart[FlushDiskType] = FlushDiskType.ASYNC_FLUSH
    """Whether a put is acknowledged when it is in the page cache (`ASYNC_FLUSH`) or on the disk
    (`SYNC_FLUSH`)."""
    flush_interval_commit_log: Now[Interval] = 500
    """How often the commit log is checked for a flush."""
    flush_commit_log_least_pages: Now[Pages] = 4
    """The minimum number of 4 KiB pages that a check flushes under `ASYNC_FLUSH`. Fewer wait for a
    later check."""
    flush_commit_log_thorough_interval: Now[Pause] = 10_000
    """The time since the last flush after which a check flushes any number of pages."""
    flush_interval_consume_queue: Now[Interval] = 1000
    """How often the queues and the index are checked for a flush."""
    flush_consume_queue_least_pages: Now[Pages] = 2
    """The minimum number of 4 KiB pages that a check flushes, on average over the changed queue
    files. Fewer wait for a later check, unless 64 MiB of the log came since the last flush.
    """
    flush_consume_queue_thorough_interval: Now[Pause] = 60_000
    """The time since the last flush after which a check flushes any number of pages."""
    sync_flush_timeout: Now[Timeout] = 5000
    """How long a put waits for the disk under `SYNC_FLUSH` before it is answered
    FLUSH_DISK_TIMEOUT."""

    # Copies on slaves
    in_sync_replicas: Now[Annotated[int, Within(1, 100)]] = 2
    """The number of copies, including the master's own, for which a SYNC_MASTER waits. With 1,
    RocketMQ's default, it waits for no slave."""
    min_in_sync_replicas: Now[Annotated[int, Within(1, 100)]] = 1
    """The minimum to which `enableAutoInSyncReplicas` may reduce `inSyncReplicas`. Under a
    controller, sends are answered SLAVE_NOT_AVAILABLE while fewer brokers are in sync."""
    enable_auto_in_sync_replicas: Now[bool] = False
    """Whether a SYNC_MASTER waits for fewer copies while fewer slaves are in sync."""
    all_ack_in_sync_state_set: Restart[bool] = True
    """Whether a master under a controller waits for every broker that may be elected, instead of
    for `inSyncReplicas` copies. RocketMQ's default is false: a failover may then lose messages."""
    slave_timeout: Now[Timeout] = 3000
    """How long a SYNC_MASTER waits for slaves before it answers FLUSH_SLAVE_TIMEOUT."""
    ha_max_gap_not_in_sync: Now[Annotated[int, Within(1, 1 << 62)]] = 256 << 20
    """How many bytes of the log a slave may lack and still count as in sync."""

    # Reading
    max_transfer_bytes_on_message_in_memory: Now[Annotated[int, Within(1, 64 << 20)]] = 256 << 10
    """The maximum number of bytes in the response to a pull."""
    max_transfer_count_on_message_in_memory: Now[Annotated[int, Within(1, 1_000_000)]] = 32
    """The maximum number of messages in the response to a pull."""
    max_filter_message_size: Now[Annotated[int, Within(20, 16_000_000)]] = 16_000
    """The maximum number of bytes of queue entries that one read covers."""
    max_msgs_num_batch: Now[Annotated[int, Within(1, 1_000_000)]] = 64
    """The maximum number of messages that a query by key returns."""

    # Retention
    file_reserved_time: Now[Annotated[int, Within(0, 1_000_000)]] = 72
    """Hours that a commit-log file is kept."""
    delete_when: Now[Hours] = "04"
    """Hours of the day (local time), separated by `;`, at which expired files are deleted."""
    clean_resource_interval: Now[Interval] = 10_000
    """How often the disk is checked."""
    clean_file_forcibly_enable: Now[bool] = True
    """Whether files that are not expired may be deleted if the disk is full
    (`diskSpaceCleanForciblyRatio`)."""
    disk_max_used_space_ratio: Now[Percent] = 75
    """Percent of the disk above which expired files are deleted at any hour. Values below 10
    count as 10, values above 95 as 95."""
    disk_space_clean_forcibly_ratio: Now[Percent] = 85
    """Percent of the disk above which the oldest files are deleted even if they are not expired.
    Values below 30 count as 30, values above 85 as 85."""
    disk_space_warning_level_ratio: Now[Percent] = 90
    """Percent of the disk above which the store accepts no messages. Values below 35 count as 35,
    values above 90 as 90."""
    delete_commit_log_files_interval: Now[Pause] = 100
    """The pause between the deletions of two files."""
    delete_file_batch_max: Now[Count] = 10
    """The maximum number of files that one check deletes."""
    max_commit_log_bytes: Now[Annotated[int, Within(0, 1 << 62)]] = 0
    """Bytes of commit log above which the oldest files are deleted; 0 for no limit. RocketMQ does
    not have this setting."""

    # Config files, delayed messages, transactions
    flush_consumer_offset_interval: Now[Interval] = 5000
    """How often consumer offsets are saved."""
    flush_delay_offset_interval: Now[Interval] = 10_000
    """How often the progress of delayed messages is saved."""
    message_delay_level: Restart[Delays] = DEFAULT_DELAY_LEVELS_TEXT
    """The delays of the levels 1, 2, 3 and so on."""
    transaction_time_out: Now[CountOrNone] = 6000
    """The age at which the producer of an unresolved half message is first asked for its state."""
    transaction_check_max: Now[Count] = 15
    """How many times the producer is asked before the half message is moved to
    `TRANS_CHECK_MAX_TIME_TOPIC`."""
    transaction_check_interval: Now[Interval] = 30_000
    """How often half messages are checked."""

    # Timer messages
    timer_wheel_enable: Restart[bool] = True
    """Whether messages may have a delivery time of their own."""
    timer_precision_ms: Restart[Timeout] = 1000
    """The resolution of delivery times. A message is delivered at the end of its slot."""
    timer_roll_window_slot: Now[Annotated[int, Within(2, INT_MAX)]] = 2 * 24 * 60 * 60
    """Slots of `timerPrecisionMs` after which a waiting message is stored again."""
    timer_max_delay_sec: Now[Count] = 3 * 24 * 60 * 60
    """The maximum delay of a timer message in seconds."""
    timer_flush_interval_ms: Now[Interval] = 1000
    """How often the timer's files are saved."""
    mapped_file_size_timer_log: Restart[FileSize] = 100 << 20
    """The size of a timer-log file."""

    def __post_init__(self) -> None:
        check(self)
        size = HEADER_SIZE + self.max_hash_slot_num * SLOT_SIZE + self.max_index_num * ENTRY_SIZE
        if size > INT_MAX:
            raise StoreError(
                f"settings maxHashSlotNum and maxIndexNum: {self.max_hash_slot_num} slots and "
                f"{self.max_index_num} entries need {size} bytes, but an index file has at "
                f"most {INT_MAX}; reduce one of them"
            )

    @property
    def is_slave(self) -> bool:
        """Return whether the messages come from a master.

        Call it each time: a broker may be promoted.
        """
        return self.broker_role is BrokerRole.SLAVE


S = TypeVar("S", bound=msgspec.Struct)


@cache
def _names(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return the names of attributes by those of `broker.conf`."""
    return {field.encode_name: field.name for field in msgspec.structs.fields(kind)}


def make_settings(
    values: StoreSettings | Mapping[str, object] | str | os.PathLike[str] | None,
) -> StoreSettings:
    """Return settings from a mapping (names of `broker.conf` or of the attributes) or a file.

    Args:
        values: settings as they are, a mapping, the path of a `broker.conf`, or None for the
            defaults. Names that mqlake does not know cause a warning, and are ignored.

    Raises:
        StoreError: a setting has an invalid value, or a file cannot be read.
    """
    return settings_of(StoreSettings, values)


def settings_of(
    kind: type[S], values: S | Mapping[str, object] | str | os.PathLike[str] | None
) -> S:
    """Return settings of one kind, which may be more than a store's; see `make_settings`."""
    if isinstance(values, kind):
        return values
    if values is None:
        return kind()
    if isinstance(values, (str, os.PathLike)):
        return _convert(kind, read_properties(Path(values)))
    return _convert(kind, cast("Mapping[str, object]", values))


def read_properties(path: Path) -> dict[str, str]:
    """Read a file of Java's `Properties`; warn of lines that a later one of the same name replaces.

    Raises:
        StoreError: the file cannot be read, or Java would not read it.
    """
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    found: dict[str, java_properties.LogicalLine] = {}
    try:
        for line in java_properties.lines(text):
            if line.name is not None:
                _warn_of_repetition(path, found.get(line.name), line)
                found[line.name] = line
    except FormatError as error:
        raise StoreError(f"{path}: {error}") from None
    return {name: line.value or "" for name, line in found.items()}


def _warn_of_repetition(
    path: Path, earlier: java_properties.LogicalLine | None, line: java_properties.LogicalLine
) -> None:
    if earlier is not None:
        warnings.warn(
            f"{path}: line {earlier.number} is ignored: line {line.number} sets {line.name} again",
            stacklevel=4,
        )


def parse_properties(text: str, *, is_strict: bool = False) -> dict[str, str]:
    """Return the pairs in a request or an answer of a broker or a name server.

    Args:
        is_strict: whether a malformed escape is an error. Brokers in Java do not escape what they
            answer, so it stays as it is there.

    Raises:
        FormatError: `is_strict`, and the text is malformed.
    """
    return java_properties.parse(text, is_strict=is_strict)


def properties_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Return lines that `parse_properties` and Java's `Properties` read as these pairs."""
    return java_properties.text_of(pairs)


def texts(settings: msgspec.Struct) -> dict[str, str]:
    """Return the values of settings as texts of a `broker.conf`, by their names there.

    Those that contain passwords are left out.
    """
    names, hidden = _names(type(settings)), secrets(type(settings))
    return {
        name: _text(getattr(settings, attribute))
        for name, attribute in names.items()
        if attribute not in hidden
    }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.value if isinstance(value, Enum) else value)


def attribute_of(kind: type[msgspec.Struct], name: str) -> str | None:
    """Return the attribute for a name in a `broker.conf`, None if it is not known."""
    names = _names(kind)
    return names.get(name) or (name if name in names.values() else None)


def _convert(kind: type[S], values: Mapping[str, object]) -> S:
    known: dict[str, Any] = {}
    names = _names(kind)
    attributes = {attribute: name for name, attribute in names.items()}
    silent: Mapping[str, str] = getattr(kind, "without_effect", {})
    for name, value in values.items():
        encoded = attributes.get(name, name)
        if encoded not in names:
            if encoded not in silent:
                _warn(name, names)
            continue
        known[encoded] = value.value if isinstance(value, Enum) else value
    for name, value in known.items():
        _check_type(kind, names[name], value)
    return msgspec.convert(known, kind, strict=False)


def _check_type(kind: type[msgspec.Struct], attribute: str, value: object) -> None:
    try:
        msgspec.convert(value, _types(kind)[attribute], strict=False)
    except (msgspec.ValidationError, ValueError):
        raise refusal(kind, attribute, value) from None


@cache
def _types(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the types of the attributes."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


def _warn(name: str, names: Iterable[str]) -> None:
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    warnings.warn(f"setting {name} is not known and has no effect{hint}", stacklevel=5)
