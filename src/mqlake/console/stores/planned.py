"""What retention would remove from a store, now and tonight, by the code that a broker runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from mqlake.errors import MqlakeError
from mqlake.storage.clock import SystemClock
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import DiskUsage
from mqlake.store.config.properties_file import read_changed
from mqlake.store.retention.report import RetentionReport, plan_store
from mqlake.store.settings import StoreSettings, attribute_of, make_settings

_HOUR = 3_600_000
_LATEST = 253_402_300_799_000
"""The last second of the year 9999."""


class Assumed(msgspec.Struct, frozen=True):
    """What a plan assumes instead of what it finds.

    Attributes:
        settings: of a broker, by the names of `broker.conf`; others are those in the store's
            `config/broker.properties`, or RocketMQ's defaults.
        at: the time of the plan (ms); the next hour of `deleteWhen` if None.
        disk_used: percentage of the disk that is in use.
    """

    settings: Mapping[str, str] = {}
    at: int | None = None
    disk_used: int | None = None


class Plans(msgspec.Struct, frozen=True):
    """What retention would remove.

    Attributes:
        settings: the settings that the plans are for.
        now: the plan for this moment.
        tonight: the plan for the next hour of `deleteWhen`, or for the assumed time.
        reserved: milliseconds after its last change at which a segment expires.
    """

    settings: StoreSettings
    now: RetentionReport
    tonight: RetentionReport

    @property
    def reserved(self) -> int:
        return self.settings.file_reserved_time * _HOUR


def plans(path: Path, assumed: Assumed) -> Plans:
    """Plan a store's retention; nothing is removed.

    Raises:
        StoreError: the directory is not a store.
        MqlakeError: an assumed value is invalid.
    """
    directory = LocalOwnedDirectory(path)
    settings = settings_of(directory, assumed.settings)
    usage = None
    if assumed.disk_used is not None:
        total = directory.usage().total
        usage = DiskUsage(total, total - total * assumed.disk_used // 100)
    if assumed.at is not None and not 0 <= assumed.at <= _LATEST:
        raise MqlakeError(f"at: {assumed.at} is not a time in milliseconds since 1970")
    now = plan_store(directory, settings, SystemClock().milliseconds(), usage)
    at = assumed.at if assumed.at is not None else now.next_time
    tonight = now if at is None or at == now.at else plan_store(directory, settings, at, usage)
    return Plans(settings, now, tonight)


def settings_of(directory: LocalOwnedDirectory, given: Mapping[str, str]) -> StoreSettings:
    """Return the settings of a store: its own, and others that override them.

    Args:
        given: by the names of `broker.conf`; names that do not concern the store are ignored.

    Raises:
        MqlakeError: a value is invalid.
    """
    own = read_changed(directory, StoreSettings).besides(StoreSettings, {})
    known = {name: value for name, value in given.items() if attribute_of(StoreSettings, name)}
    return make_settings({**own, **known})
