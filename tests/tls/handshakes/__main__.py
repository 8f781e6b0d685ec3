"""python -m tests.tls.handshakes: mutate handshakes, or repeat one."""

from __future__ import annotations

import sys

from tests.seeds import main
from tests.tls.handshakes import page
from tests.tls.handshakes.run import run

if __name__ == "__main__":
    sys.exit(main("tests.tls.handshakes", "connections", run, page.write))
