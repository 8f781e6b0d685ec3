"""A table of `follow` for readers of other projects, and the rows that they are asked for."""

from __future__ import annotations

from pathlib import Path

from mqlake.lake.files.compaction import merge
from mqlake.lake.options import Format
from mqlake.lake.tables.opening import open_table
from tests.lake.tables.tables import COLUMNS, DAY, add, options, row

COUNT = 20
Read = list[tuple[str, int, int, str, str | None]]


def table(path: Path, format_: Format) -> Read:
    """Make a table: two commits, a third one with another column, and a compaction of the first;
    return the rows of one topic, and of all from an offset on.
    """
    expected: Read = []
    for number in range(3):
        columns = COLUMNS if number < 2 else (*COLUMNS, "tags")
        made = open_table(options(path, format_, columns=columns))
        more = {} if number < 2 else {"tags": "late"}
        places = range(number * COUNT, (number + 1) * COUNT)
        rows = [row(one, "AB"[one % 2], 20_000 + number, **more) for one in places]
        add(made, number, rows, columns)
        if number == 1:
            made.replace([merge(job) for job in made.merges(is_last=True)])
        for one in places:
            if one % 2 == 0 or one >= 30:
                at = (20_000 + number) * DAY + one
                expected.append(("AB"[one % 2], one, at, str(one), more.get("tags")))
    return sorted(expected, key=lambda found: found[:2])
