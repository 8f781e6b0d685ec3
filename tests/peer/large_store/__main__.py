"""python -m tests.peer.large_store: read, verify and rebuild a large store that Java wrote.

Ten million messages need 5 GiB of disk.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from mqlake.spark.session import open_session
from tests.peer.large_store.run import faults, write

DEFAULT, NIGHTLY = 200_000, 10_000_000


def main() -> int:
    """Return 0 if everything is equal, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.large_store")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--messages", type=int, default=DEFAULT, help=f"default: {DEFAULT:,}")
    size.add_argument(
        "--nightly", action="store_const", dest="messages", const=NIGHTLY, help=f"{NIGHTLY:,}"
    )
    parser.add_argument("--directory", type=Path, help="where the store is written, and removed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as made:
        directory, begin = Path(made), time.perf_counter()
        write(directory, arguments.messages)
        seconds = time.perf_counter() - begin
        _tell(f"written by Java: {arguments.messages:,} messages in {seconds:.1f} s")
        with open_session() as session:
            given = (session.spark, session.engine, directory, arguments.messages)
            wrong = list(faults(*given, _tell))
    for fault in wrong:
        _tell(fault)
    _tell(f"{len(wrong)} wrong; load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    return min(1, len(wrong))


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
