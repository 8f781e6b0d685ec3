"""Find messages by physical offset, which message ids also contain (access path "points")."""

from __future__ import annotations

from mqlake.errors import FormatError
from mqlake.formats.message_id import decode_message_id
from mqlake.query.reading.conditions import Selection, numbers, texts
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.access.stretches import Stretch, join
from mqlake.query.store.place import OpenStore
from mqlake.store.log.scan import head_at


def find(
    store: OpenStore, boundaries: Boundaries, selection: Selection, stretch: Stretch
) -> list[Stretch] | None:
    """Return stretches with the only records that can be selected; None if they are not listed."""
    offsets = _offsets(selection)
    if offsets is None:
        return None
    found: list[Stretch] = []
    for offset in sorted(offsets):
        if stretch[0] <= offset < stretch[1]:
            # The record itself proves nothing: it may be in the body of another record.
            head = head_at(store.log, offset)
            if head is not None:
                found.append((boundaries.at_or_before(offset), offset + head.size))
    return join(found)


def _offsets(selection: Selection) -> set[int] | None:
    listed = numbers(selection, "physicalOffset")
    ids = texts(selection, "msgId")
    if ids is None:
        return None if listed is None else set(listed)
    named = {_offset(text) for text in ids} - {-1}
    return named if listed is None else named & listed


def _offset(message_id: str) -> int:
    try:
        return decode_message_id(message_id)[1]
    except FormatError:
        return -1
