"""python -m tests.broker.in_use: run some seeds, or repeat one."""

from __future__ import annotations

import sys

from tests.broker.in_use import page
from tests.broker.in_use.run import run
from tests.seeds import main

if __name__ == "__main__":
    sys.exit(main("tests.broker.in_use", "runs", run, page.write, count=500))
