"""Read `config/incarnations.json` (docs/formats/incarnations.md).

mqlake's own file: RocketMQ ignores it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from mqlake.formats.config.base import DataVersion

Offset = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""A physical offset of the commit log."""


class EndedIncarnations(msgspec.Struct, frozen=True, rename="camel"):
    """Where the last deleted incarnation of each topic and consumer group ended.

    Attributes:
        topics: by topic, the physical offset before which its records belong to incarnations that
            were deleted.
        others: the same for all topics that are not in `topics`.
        groups: by consumer group, the same for the records of its state.
        deletions: by topic, the physical offset at which the log ended when it was deleted.
            Messages before it do not wait for the topic any more. Unlike `topics`, this is never
            derived: a message may wait longer than the first record of its topic exists.
    """

    file_name: ClassVar[str] = "incarnations.json"

    topics: dict[str, Offset] = {}
    others: Offset = 0
    groups: dict[str, Offset] = {}
    deletions: dict[str, Offset] = {}
    data_version: DataVersion = DataVersion()
