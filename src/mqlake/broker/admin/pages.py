"""Pages of a table, for slaves that request it a page at a time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from mqlake.formats.config import DataVersion
from mqlake.protocol.body import decode_body
from mqlake.protocol.errors import BodyError

_MOST = 2000
LONGEST = 4 << 20
"""Bytes of entries after which a page ends."""


def page(
    names: Iterable[str],
    first: int | None,
    most: int | None,
    known: str | None,
    version: DataVersion,
) -> tuple[list[str], bool]:
    """Return the names of the entries to answer, and whether these are all.

    Args:
        first: the number of entries that the slave has; None, like the next two, if it requests no
            page.
        most: the maximum number of entries.
        known: the version of the slave's entries, as JSON. If it differs from the current one, the
            answer begins at the first entry again.
        version: of the table.
    """
    if first is None and most is None and known is None:
        return list(names), True
    start = max(0, first or 0) if _is_same(known, version) else 0
    count = min(_MOST if most is None else max(1, most), _MOST)
    found = list(islice(names, start, start + count + 1))
    # RocketMQ's slaves stop asking if a single entry is left.
    rest = list(islice(names, start + count + 1, start + count + 2)) if len(found) > count else []
    return found[:count] if rest else found, False


def _is_same(known: str | None, version: DataVersion) -> bool:
    if not known:
        return False
    try:
        return decode_body(DataVersion, known.encode("utf-8", "replace")) == version
    except BodyError:
        return False
