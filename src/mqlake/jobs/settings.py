"""What a broker's configuration would say, and jobs have to know: sizes, index rules, delays."""

from __future__ import annotations

import msgspec

from mqlake.formats import consume_queue, index_file
from mqlake.formats.consume_queue import DEFAULT_DELAY_LEVELS
from mqlake.formats.dialect import Dialect


class Settings(msgspec.Struct, frozen=True, rename="camel"):
    """How a store's derived files are laid out.

    Attributes:
        dialect: whose index rules and checkpoint fields hold.
        queue_file_size: bytes of a consume-queue file (`mappedFileSizeConsumeQueue`).
        hash_slots: of an index file (`maxHashSlotNum`).
        max_index: entries an index file has room for, its unused first one included
            (`maxIndexNum`).
        delay_levels: milliseconds of each delay level (`messageDelayLevel`).
    """

    dialect: Dialect = Dialect.V5_5
    queue_file_size: int = consume_queue.DEFAULT_FILE_SIZE
    hash_slots: int = index_file.DEFAULT_SLOTS
    max_index: int = index_file.DEFAULT_MAX_ENTRIES
    delay_levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS
