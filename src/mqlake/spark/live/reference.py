"""Write the tables of docs/spark-live.md: `python -m mqlake.spark.live.reference PAGE`."""

from __future__ import annotations

import sys
from pathlib import Path

from mqlake.query.live.option_table import LIVE_OPTIONS
from mqlake.spark.live.sink_options import LIVE_SINK_OPTIONS
from mqlake.spark.options.reference import option_table, with_tables


def tables() -> dict[str, str]:
    """Return the tables of the page, by their names."""
    return {
        "options": option_table(LIVE_OPTIONS),
        "sink options": option_table(LIVE_SINK_OPTIONS),
    }


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_tables(path.read_text(), tables()))
