"""Decide which files of a store are removed, and whether it accepts messages: no disk, no clock.

Upstream: `DefaultMessageStore.CleanCommitLogService`, `MappedFileQueue.deleteExpiredFileByTime`,
`deleteExpiredFileByOffset`, `IndexService.deleteExpiredFile`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

import msgspec

from mqlake.storage.protocol import DiskUsage
from mqlake.store.bounds import delete_hours
from mqlake.store.settings import StoreSettings

_HOUR = 60 * 60 * 1000
_HOURS_A_DAY = 24


class Reason(enum.StrEnum):
    """Why a file is removed."""

    EXPIRED = "expired"
    """Not written for `fileReservedTime` hours."""
    DISK = "disk"
    """The disk is fuller than `diskSpaceCleanForciblyRatio`."""
    BYTES = "bytes"
    """The log has more than `maxCommitLogBytes`."""
    LOG = "log"
    """The part of the log that it points into is removed."""


class SegmentFile(NamedTuple):
    """A segment: its path, the physical offset it starts at, bytes, and last change (ms)."""

    path: str
    base: int
    size: int
    modified: int


class DerivedFile(NamedTuple):
    """A queue or index file: its path, bytes, and the last physical offset it points to."""

    path: str
    size: int
    last_offset: int


class Removal(msgspec.Struct, frozen=True, rename="camel"):
    """A file that is removed."""

    file: str
    size: int = msgspec.field(name="bytes")
    reason: Reason = Reason.LOG


class Moment(NamedTuple):
    """When a plan is made.

    Attributes:
        now: milliseconds since 1970.
        is_time: whether expired files are removed whatever the free space.
        usage: the usage of the disk.
    """

    now: int
    is_time: bool
    usage: DiskUsage


class LogPlan(msgspec.Struct, frozen=True):
    """The plan for the log.

    Attributes:
        removals: the files to remove, oldest first.
        min_offset: physical offset of the log's start after that.
        used_percent: of the disk, now, rounded up.
        not_writable: why the store accepts no messages, None if it does.
        warnings: one line each.
    """

    removals: list[Removal]
    min_offset: int
    used_percent: int
    not_writable: str | None
    warnings: list[str]


class Ratios(NamedTuple):
    """Percentages of the disk, limited to the bounds that RocketMQ allows."""

    most_used: int
    clean_forcibly: int
    warning: int


def ratios(settings: StoreSettings) -> Ratios:
    """Return the percentages of the disk above which something is done."""
    return Ratios(
        _within(settings.disk_max_used_space_ratio, 10, 95),
        _within(settings.disk_space_clean_forcibly_ratio, 30, 85),
        _within(settings.disk_space_warning_level_ratio, 35, 90),
    )


def used_percent(usage: DiskUsage) -> int:
    """Return the percentage of the disk in use, rounded up, as `UtilAll` does."""
    used = usage.total - usage.free
    return -(-used * 100 // usage.total) if usage.total > 0 else 0


def not_writable(settings: StoreSettings, usage: DiskUsage) -> str | None:
    """Return why the store accepts no messages, None if there is room."""
    percent, most = used_percent(usage), ratios(settings).warning
    if percent <= most:
        return None
    return f"the disk is {percent} % full: no messages are accepted above {most} %; free some space"


def is_time(settings: StoreSettings, now: int, zone: tzinfo | None = None) -> bool:
    """Return whether a time (ms) is within an hour of `deleteWhen`.

    Args:
        zone: the time zone of the hours; by default, this machine's.
    """
    local = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone)
    return local.hour in delete_hours(settings.delete_when)


def next_time(settings: StoreSettings, now: int, zone: tzinfo | None = None) -> int | None:
    """Return the first time (ms) from `now` on that is within an hour of `deleteWhen`.

    None if the clock skips the only such hour of the next day.
    """
    # Time zones differ by multiples of a quarter of an hour.
    quarter = _HOUR // 4
    start = now - now % quarter
    times = (max(now, start + step * quarter) for step in range(4 * (_HOURS_A_DAY + 1)))
    return next((time for time in times if is_time(settings, time, zone)), None)


def plan_log(
    settings: StoreSettings, moment: Moment, files: Sequence[SegmentFile], needed: int
) -> LogPlan:
    """Return which files of the log are removed.

    The oldest are first, and none comes before an older one. The last file stays. If the disk is
    too full, files are removed until it is not; the plan includes what `deleteFileBatchMax` defers.

    Args:
        files: ascending.
        needed: a physical offset: files that end at or after it stay. It is at most the log's end,
            so that the file of the last byte stays.
    """
    removals = list(_removals(settings, moment, files, needed))
    gone = len(removals)
    min_offset = files[gone].base if gone < len(files) else 0
    usage = _after(moment.usage, sum(removal.size for removal in removals))
    return LogPlan(
        removals,
        min_offset,
        used_percent(moment.usage),
        not_writable(settings, moment.usage),
        list(_warnings(settings, usage, sum(file.size for file in files[gone:]))),
    )


def plan_derived(files: Sequence[DerivedFile], min_offset: int) -> list[Removal]:
    """Return which files of a queue, or of the index, are removed with the start of the log.

    These are files that point only before `min_offset`, up to the first that does not; the last one
    stays.

    Args:
        files: ascending.
    """
    removals: list[Removal] = []
    for file in files[:-1]:
        if file.last_offset >= min_offset:
            break
        removals.append(Removal(file.path, file.size))
    return removals


def _removals(
    settings: StoreSettings, moment: Moment, files: Sequence[SegmentFile], needed: int
) -> Iterator[Removal]:
    reserved = settings.file_reserved_time * _HOUR
    left, freed = sum(file.size for file in files), 0
    for file in files[:-1]:
        if file.base + file.size >= needed:
            return
        percent = used_percent(_after(moment.usage, freed))
        is_expired = moment.now >= file.modified + reserved
        if 0 < settings.max_commit_log_bytes < left:
            reason = Reason.BYTES
        elif settings.clean_file_forcibly_enable and percent > ratios(settings).clean_forcibly:
            reason = Reason.DISK
        elif is_expired and (moment.is_time or percent > ratios(settings).most_used):
            reason = Reason.EXPIRED
        else:
            return
        left, freed = left - file.size, freed + file.size
        yield Removal(file.path, file.size, reason)


def _warnings(settings: StoreSettings, usage: DiskUsage, left: int) -> Iterator[str]:
    percent, forcibly = used_percent(usage), ratios(settings).clean_forcibly
    if percent > forcibly:
        cause = "no other file can be removed"
        if not settings.clean_file_forcibly_enable:
            cause = "cleanFileForciblyEnable is off"
        yield f"the disk will be {percent} % full, more than {forcibly} %: {cause}; free some space"
    if 0 < settings.max_commit_log_bytes < left:
        most = settings.max_commit_log_bytes
        yield f"the log's last file keeps it at {left} bytes, more than maxCommitLogBytes ({most})"


def _after(usage: DiskUsage, freed: int) -> DiskUsage:
    return DiskUsage(usage.total, min(usage.total, usage.free + freed))


def _within(percent: int, least: int, most: int) -> int:
    return max(least, min(percent, most))
