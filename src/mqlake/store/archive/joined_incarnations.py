"""The table of incarnations for a live log and its archive, which begins earlier.

A store forgets the names of deleted topics of which its log has no records any more. The archive
still has these records, so they are dead as long as an archived table says so.
"""

from __future__ import annotations

import msgspec

from mqlake.formats import fastjson
from mqlake.formats.archive_manifest import LOG
from mqlake.formats.file_name import parse_segment_name
from mqlake.formats.incarnations import EndedIncarnations
from mqlake.storage.protocol import Directory
from mqlake.store.config.config_files import DIRECTORY
from mqlake.store.incarnations.checksum import with_checksum
from mqlake.store.incarnations.table import find_incarnations

TABLE = f"{DIRECTORY}/{EndedIncarnations.file_name}"
"""Path of the table in a store."""


def joined_table(live: Directory, archived: Directory) -> bytes | None:
    """Return the content of a live store's table with what it has forgotten of an archived log.

    None if the live store has no whole table, the archive has none, or nothing was forgotten.

    Raises:
        StoreError: a table cannot be read.
    """
    known, older = find_incarnations(live), find_incarnations(archived)
    bases = [base for name in live.names(LOG) if (base := parse_segment_name(name)) is not None]
    if not known.is_whole or not older.table or not bases:
        return None
    joined = known.table.with_older(older.table, min(bases))
    if (joined.topics, joined.others) == (known.table.topics, known.table.others):
        return None
    fields = msgspec.structs.replace(joined.ended(), data_version=known.version)
    return fastjson.dumps(with_checksum(fields)).encode("utf-8", "replace")
