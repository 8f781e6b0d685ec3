"""Build a store's queues and index in another directory, in this process.

`python examples/rebuild_elsewhere.py STORE NEW_DIRECTORY`
"""

from __future__ import annotations

import sys
from pathlib import Path

from mqlake.jobs import LocalEngine
from mqlake.jobs.rebuild import rebuild


def main(store: str, out: str) -> None:
    """Rebuild on threads of this process; `mqlake.spark.open_session` has an engine for Spark."""
    engine = LocalEngine(progress=lambda step, done, total: print(f"{step}: {done} of {total}"))
    report = rebuild(Path(store), engine, out=Path(out))
    print(f"{report.queue_entries} queue entries, {report.index_entries} index entries")
    for damage in report.damage:
        print(f"{damage.file} at {damage.offset}: {damage.reason}")


if __name__ == "__main__":
    main(*sys.argv[1:])
