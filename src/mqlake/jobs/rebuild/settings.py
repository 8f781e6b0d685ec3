"""Settings of a broker's configuration that jobs need: sizes, index rules, delays."""

from __future__ import annotations

import msgspec

from mqlake.dispatch.derived.index_entries import check_sizes
from mqlake.errors import FormatError
from mqlake.formats import consume_queue, index_file
from mqlake.formats.consume_queue import DEFAULT_DELAY_LEVELS
from mqlake.formats.dialect import Dialect
from mqlake.jobs.queues.files import file_size_for
from mqlake.store.snapshot import Snapshot

_MAX_INT = 0x7FFFFFFF


class Settings(msgspec.Struct, frozen=True, rename="camel"):
    """The layout of a store's derived files.

    Attributes:
        dialect: the RocketMQ version whose index rules and checkpoint fields apply.
        queue_file_size: bytes of a consume queue file (`mappedFileSizeConsumeQueue`).
        hash_slots: hash slots of an index file (`maxHashSlotNum`).
        max_index: the capacity of an index file in entries, including its unused first one
            (`maxIndexNum`).
        delay_levels: milliseconds of each delay level (`messageDelayLevel`).
    """

    dialect: Dialect = Dialect.V5_5
    queue_file_size: int = consume_queue.DEFAULT_FILE_SIZE
    hash_slots: int = index_file.DEFAULT_SLOTS
    max_index: int = index_file.DEFAULT_MAX_ENTRIES
    delay_levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS


def settle(
    snapshot: Snapshot,
    *,
    queue_file_size: int | None = None,
    hash_slots: int | None = None,
    max_index: int | None = None,
    delay_levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
) -> Settings:
    """Return the settings of a store: the given ones, otherwise those of its files, otherwise the
    defaults.

    Raises:
        FormatError: a file cannot have these sizes.
    """
    sizes = snapshot.index.files[-1].sizes if snapshot.index.files else None
    settings = Settings(
        dialect=snapshot.detected.dialect,
        queue_file_size=file_size_for(
            queue_file_size or snapshot.queue_file_size or consume_queue.DEFAULT_FILE_SIZE
        ),
        hash_slots=hash_slots or (sizes.slots if sizes else index_file.DEFAULT_SLOTS),
        max_index=max_index or (sizes.max_entries if sizes else index_file.DEFAULT_MAX_ENTRIES),
        delay_levels=delay_levels,
    )
    check_sizes(settings.hash_slots, settings.max_index)
    if settings.queue_file_size > _MAX_INT:
        raise FormatError(
            f"a consume queue file cannot have {settings.queue_file_size} bytes: the maximum "
            f"is {_MAX_INT}"
        )
    return settings
