"""Run mqlake's console on a busy machine: `python -m tests.peer.console.patient console …`.

Queries have the priority of all else. At the low one that the console gives them they would wait
for all other tests, and be stopped at their limit.
"""

from __future__ import annotations

import os
import runpy
import sys
from functools import partial

from mqlake.console.sql import queries
from mqlake.console.sql.statement import SqlLimits
from tests.until import PATIENCE

if __name__ == "__main__":
    os.setpriority = lambda *_: None  # type: ignore[assignment]
    queries.SqlLimits = partial(SqlLimits, seconds=PATIENCE)  # type: ignore[assignment,misc]
    sys.argv[0] = "mqlake"
    runpy.run_module("mqlake", run_name="__main__", alter_sys=True)
