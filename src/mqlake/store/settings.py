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
from typing import Any, TypeVar, cast

import msgspec

from mqlake.errors import StoreError
from mqlake.formats.consume_queue import DEFAULT_DELAY_LEVELS_TEXT, DEFAULT_FILE_SIZE
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import DEFAULT_MAX_ENTRIES, DEFAULT_SLOTS


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


class StoreSettings(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How a store is written, flushed, recovered and trimmed.

    Sizes are bytes, times milliseconds, where nothing else is said.
    """

    # Files
    mapped_file_size_commit_log: int = 1 << 30
    mapped_file_size_consume_queue: int = DEFAULT_FILE_SIZE
    max_hash_slot_num: int = DEFAULT_SLOTS
    max_index_num: int = DEFAULT_MAX_ENTRIES
    message_index_enable: bool = True
    index_dialect: Dialect = Dialect.V5_5
    """Which release's index entries and checkpoint a new store gets (mqlake's own)."""

    # Append
    broker_role: BrokerRole = BrokerRole.ASYNC_MASTER
    broker_ip1: str = msgspec.field(default="127.0.0.1", name="brokerIP1")
    listen_port: int = 10911
    max_message_size: int = 4 << 20
    auto_message_version_on_topic_len: bool = True
    """Topics longer than 127 bytes are written as V2 records instead of being refused."""
    os_page_cache_busy_time_out_mills: int = 1000
    enabled_append_prop_crc: bool = msgspec.field(default=True, name="enabledAppendPropCRC")
    """Whether each record states a CRC of itself in its last property (off in RocketMQ)."""
    force_verify_prop_crc: bool = msgspec.field(default=False, name="forceVerifyPropCRC")
    """Opening a store ends its log at the first record without a right checksum of that kind."""

    # Flush
    flush_disk_type: FlushDiskType = FlushDiskType.ASYNC_FLUSH
    flush_interval_commit_log: int = 500
    flush_commit_log_least_pages: int = 4
    flush_commit_log_thorough_interval: int = 10_000
    flush_interval_consume_queue: int = 1000
    flush_consume_queue_least_pages: int = 2
    flush_consume_queue_thorough_interval: int = 60_000
    sync_flush_timeout: int = 5000

    # Reading
    max_transfer_bytes_on_message_in_memory: int = 256 << 10
    max_transfer_count_on_message_in_memory: int = 32
    max_filter_message_size: int = 16_000
    """Bytes of queue entries that one read goes through at most."""
    max_msgs_num_batch: int = 64
    """Most messages that a query by key returns."""

    # Retention
    file_reserved_time: int = 72
    """Hours."""
    delete_when: str = "04"
    """Hours of the day, local time, separated by `;`."""
    clean_resource_interval: int = 10_000
    clean_file_forcibly_enable: bool = True
    disk_max_used_space_ratio: int = 75
    """Percent of the disk from which expired files go at any hour; 10 … 95."""
    disk_space_clean_forcibly_ratio: int = 85
    """Percent from which the oldest files go whether expired or not."""
    disk_space_warning_level_ratio: int = 90
    """Percent from which the store takes no messages until there is room again."""
    delete_commit_log_files_interval: int = 100
    delete_file_batch_max: int = 10
    max_commit_log_bytes: int = 0
    """Bytes of commit log above which the oldest files go; 0 for no limit (mqlake's own)."""

    # Config files, delayed messages, transactions
    flush_consumer_offset_interval: int = 5000
    flush_delay_offset_interval: int = 10_000
    message_delay_level: str = DEFAULT_DELAY_LEVELS_TEXT
    transaction_time_out: int = 6000
    transaction_check_max: int = 15
    transaction_check_interval: int = 30_000

    # Timer messages
    timer_wheel_enable: bool = True
    """Whether messages may ask for a delivery time of their own."""
    timer_precision_ms: int = 1000
    timer_roll_window_slot: int = 2 * 24 * 60 * 60
    """Slots of `timerPrecisionMs` after which a waiting message is put again."""
    timer_max_delay_sec: int = 3 * 24 * 60 * 60
    timer_flush_interval_ms: int = 1000
    mapped_file_size_timer_log: int = 100 << 20

    def __post_init__(self) -> None:
        if (name := _too_small(self)) is not None:
            raise StoreError(f"setting {name}: {getattr(self, name)} is too small")


_SMALLEST = {
    "mapped_file_size_commit_log": 256,
    "mapped_file_size_consume_queue": 20,
    "max_hash_slot_num": 1,
    "max_index_num": 2,
    "max_message_size": 1,
    "timer_precision_ms": 1,
    "timer_roll_window_slot": 2,
}


def _too_small(settings: StoreSettings) -> str | None:
    return next(
        (name for name, least in _SMALLEST.items() if getattr(settings, name) < least), None
    )


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


def _convert(kind: type[S], values: Mapping[str, object]) -> S:
    known: dict[str, Any] = {}
    names = _names(kind)
    attributes = {attribute: name for name, attribute in names.items()}
    for name, value in values.items():
        encoded = attributes.get(name, name)
        if encoded not in names:
            _warn(name, names)
            continue
        known[encoded] = value.value if isinstance(value, Enum) else value
    try:
        return msgspec.convert(known, kind, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise StoreError(f"settings: {error}") from error


def _warn(name: str, names: Iterable[str]) -> None:
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    warnings.warn(f"setting {name} is not known and has no effect{hint}", stacklevel=5)
