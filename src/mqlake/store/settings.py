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

from mqlake.errors import StoreError
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
)


class FlushDiskType(Enum):
    """When a put is acknowledged."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    """Once it is in the page cache: it survives the end of the process."""
    SYNC_FLUSH = "SYNC_FLUSH"
    """Once it is on the disk: it survives a power cut."""


class BrokerRole(Enum):
    """Whether this store takes messages from producers."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"
    """It has the messages of its master, and takes none itself."""


class StoreSettings(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How a store is written, flushed, recovered and trimmed.

    Sizes are bytes, times milliseconds, where nothing else is said. Each field declares whether it
    may change in a running store (`Now`), or takes effect when the store is opened (`Restart`).
    """

    without_effect: ClassVar[Mapping[str, str]] = {}
    """Names that are accepted without a warning, and why they mean nothing."""

    # Files
    mapped_file_size_commit_log: Restart[FileSize] = 1 << 30
    mapped_file_size_consume_queue: Restart[Annotated[int, Within(20, INT_MAX)]] = DEFAULT_FILE_SIZE
    mapper_file_size_batch_consume_queue: Restart[Annotated[int, Within(46, INT_MAX)]] = (
        batch_consume_queue.DEFAULT_FILE_SIZE
    )
    max_hash_slot_num: Restart[Annotated[int, Within(1, 100_000_000)]] = DEFAULT_SLOTS
    max_index_num: Restart[Annotated[int, Within(2, 100_000_000)]] = DEFAULT_MAX_ENTRIES
    message_index_enable: Restart[bool] = True
    index_dialect: Restart[Dialect] = Dialect.V5_5
    """Which release's index entries and checkpoint a new store gets (mqlake's own)."""

    # Append
    broker_role: Restart[BrokerRole] = BrokerRole.ASYNC_MASTER
    """`updateBrokerConfig` promotes or demotes a broker that runs, at once."""
    broker_ip1: Restart[IPAddress] = msgspec.field(default="127.0.0.1", name="brokerIP1")
    listen_port: Restart[Port] = 10911
    max_message_size: Now[Annotated[int, Within(1, 1 << 30)]] = 4 << 20
    auto_message_version_on_topic_len: Now[bool] = True
    """Topics longer than 127 bytes are written as V2 records instead of being refused."""
    os_page_cache_busy_time_out_mills: Now[Pause] = 1000
    enabled_append_prop_crc: Restart[bool] = msgspec.field(
        default=True, name="enabledAppendPropCRC"
    )
    """Whether each record states a CRC of itself in its last property (off in RocketMQ)."""
    force_verify_prop_crc: Restart[bool] = msgspec.field(default=False, name="forceVerifyPropCRC")
    """Opening a store ends its log at the first record without a right checksum of that kind."""

    # Flush
    flush_disk_type: Restart[FlushDiskType] = FlushDiskType.ASYNC_FLUSH
    flush_interval_commit_log: Now[Interval] = 500
    flush_commit_log_least_pages: Now[Pages] = 4
    flush_commit_log_thorough_interval: Now[Pause] = 10_000
    flush_interval_consume_queue: Now[Interval] = 1000
    flush_consume_queue_least_pages: Now[Pages] = 2
    flush_consume_queue_thorough_interval: Now[Pause] = 60_000
    sync_flush_timeout: Now[Timeout] = 5000

    # Copies on slaves
    in_sync_replicas: Now[Annotated[int, Within(1, 100)]] = 2
    """How many copies a SYNC_MASTER waits for, its own counted. 1, which is RocketMQ's default,
    waits for no slave."""
    min_in_sync_replicas: Now[Annotated[int, Within(1, 100)]] = 1
    """The fewest copies that `enableAutoInSyncReplicas` may reduce that to."""
    enable_auto_in_sync_replicas: Now[bool] = False
    """Whether a SYNC_MASTER waits for fewer copies while fewer slaves are in sync."""
    slave_timeout: Now[Timeout] = 3000
    """How long a SYNC_MASTER waits for slaves before it answers FLUSH_SLAVE_TIMEOUT."""
    ha_max_gap_not_in_sync: Now[Annotated[int, Within(1, 1 << 62)]] = 256 << 20
    """Bytes of the log that a slave may lack and still be in sync."""

    # Reading
    max_transfer_bytes_on_message_in_memory: Now[Annotated[int, Within(1, 64 << 20)]] = 256 << 10
    max_transfer_count_on_message_in_memory: Now[Annotated[int, Within(1, 1_000_000)]] = 32
    max_filter_message_size: Now[Annotated[int, Within(20, 16_000_000)]] = 16_000
    """Bytes of queue entries that one read goes through at most."""
    max_msgs_num_batch: Now[Annotated[int, Within(1, 1_000_000)]] = 64
    """Most messages that a query by key returns."""

    # Retention
    file_reserved_time: Now[Annotated[int, Within(0, 1_000_000)]] = 72
    """Hours."""
    delete_when: Now[Hours] = "04"
    """Hours of the day, local time, separated by `;`."""
    clean_resource_interval: Now[Interval] = 10_000
    clean_file_forcibly_enable: Now[bool] = True
    disk_max_used_space_ratio: Now[Percent] = 75
    """Percent of the disk from which expired files go at any hour; 10 … 95."""
    disk_space_clean_forcibly_ratio: Now[Percent] = 85
    """Percent from which the oldest files go whether expired or not."""
    disk_space_warning_level_ratio: Now[Percent] = 90
    """Percent from which the store takes no messages until there is room again."""
    delete_commit_log_files_interval: Now[Pause] = 100
    delete_file_batch_max: Now[Count] = 10
    max_commit_log_bytes: Now[Annotated[int, Within(0, 1 << 62)]] = 0
    """Bytes of commit log above which the oldest files go; 0 for no limit (mqlake's own)."""

    # Config files, delayed messages, transactions
    flush_consumer_offset_interval: Now[Interval] = 5000
    flush_delay_offset_interval: Now[Interval] = 10_000
    message_delay_level: Restart[Delays] = DEFAULT_DELAY_LEVELS_TEXT
    transaction_time_out: Now[CountOrNone] = 6000
    transaction_check_max: Now[Count] = 15
    transaction_check_interval: Now[Interval] = 30_000

    # Timer messages
    timer_wheel_enable: Restart[bool] = True
    """Whether messages may ask for a delivery time of their own."""
    timer_precision_ms: Restart[Timeout] = 1000
    timer_roll_window_slot: Now[Annotated[int, Within(2, INT_MAX)]] = 2 * 24 * 60 * 60
    """Slots of `timerPrecisionMs` after which a waiting message is put again."""
    timer_max_delay_sec: Now[Count] = 3 * 24 * 60 * 60
    timer_flush_interval_ms: Now[Interval] = 1000
    mapped_file_size_timer_log: Restart[FileSize] = 100 << 20

    def __post_init__(self) -> None:
        check(self)
        size = HEADER_SIZE + self.max_hash_slot_num * SLOT_SIZE + self.max_index_num * ENTRY_SIZE
        if size > INT_MAX:
            raise StoreError(
                f"settings maxHashSlotNum and maxIndexNum: {self.max_hash_slot_num} slots and"
                f" {self.max_index_num} entries take {size} bytes, and an index file has at most"
                f" {INT_MAX}"
            )

    @property
    def is_slave(self) -> bool:
        """Whether the messages come from a master. Ask each time: a broker may be promoted."""
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
            defaults. Names that mqlake does not know warn, and are left alone.

    Raises:
        StoreError: a value that its setting cannot have, or a file that cannot be read.
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
    """Read a file of `name=value` lines, as Java's `Properties` does (no escapes over lines).

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    """Return the pairs in lines of `name=value`; see `read_properties`."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        name, found, value = line.strip().partition("=")
        if found and not name.startswith(("#", "!")):
            pairs[name.strip()] = value.strip()
    return pairs


def texts(settings: msgspec.Struct) -> dict[str, str]:
    """Return the values of settings as a `broker.conf` has them, by their names there."""
    fields = msgspec.structs.fields(type(settings))
    return {field.encode_name: _text(getattr(settings, field.name)) for field in fields}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.value if isinstance(value, Enum) else value)


def attribute_of(kind: type[msgspec.Struct], name: str) -> str | None:
    """Return the attribute that a name in a `broker.conf` stands for, None if it is not known."""
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
