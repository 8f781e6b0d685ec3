"""Write the tables of docs/spark-live.md, and the one of docs/tls.md.

`python -m mqlake.spark.live.reference PAGE…`
"""

from __future__ import annotations

import sys
from pathlib import Path

from mqlake.client.access_options import ACCESS_KEY, OPTIONS
from mqlake.query.live.option_table import LIVE_OPTIONS
from mqlake.spark.live.sink_options import LIVE_SINK_OPTIONS
from mqlake.spark.options.reference import make_table, option_table, with_tables


def tables() -> dict[str, str]:
    """Return the tables of the page, by their names."""
    return {
        "options": option_table(LIVE_OPTIONS),
        "sink options": option_table(LIVE_SINK_OPTIONS),
    }


def access_tables() -> dict[str, str]:
    """Return the table of docs/tls.md: the options of Spark and of command lines."""
    rows = [
        (
            f"`{option.name}`",
            "" if option.is_secret or option == ACCESS_KEY else f"`{option.flag}`",
            f"`{option.variable}`",
            option.meaning,
        )
        for option in OPTIONS
    ]
    head = ("option of Spark", "command line", "environment variable", "meaning")
    return {"access options": make_table(head, rows)}


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_tables(path.read_text(), tables() | access_tables()))
