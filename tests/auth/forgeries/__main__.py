"""python -m tests.auth.forgeries: forge requests, or repeat one forgery."""

from __future__ import annotations

import sys

from tests.auth.forgeries import page
from tests.auth.forgeries.run import run
from tests.seeds import main

if __name__ == "__main__":
    sys.exit(main("tests.auth.forgeries", "forgeries", run, page.write))
