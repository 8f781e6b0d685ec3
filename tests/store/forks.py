"""Use every kind of child process beside an open store: `python -m tests.store.forks PATH`.

A program of its own, as a fork copies whatever locks the threads of other tests hold.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore


def main(path: Path) -> None:
    with BlockingMessageStore.open(path) as store:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, range(-20, 0)) == list(range(20, 0, -1))
            store.put(Message("T", b"beside"))
        child = multiprocessing.get_context("fork").Process(target=sys.exit, args=(7,))
        child.start()
        child.join()
        assert child.exitcode == 7
        for close in (True, False):
            subprocess.run([sys.executable, "-c", ""], close_fds=close, check=True)
        store.put(Message("T", b"goes on"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
