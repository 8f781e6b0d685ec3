"""The threads in which a live store waits for the disk."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from mqlake.errors import StoreError

_COUNT = 2
"""There are two, so that a put does not wait for the files of many queues."""


def disk_threads() -> ThreadPoolExecutor:
    """Return a pool whose threads already run, so that no later job must start one.

    A system that is out of threads would otherwise refuse a sync in the middle of its work.

    Raises:
        StoreError: the system starts no more threads.
    """
    pool = ThreadPoolExecutor(_COUNT, "mqlake-disk")
    started = Barrier(_COUNT)
    try:
        for _ in range(_COUNT):
            pool.submit(started.wait)
    except RuntimeError as error:
        started.abort()
        pool.shutdown(cancel_futures=True)
        raise StoreError(f"the store's threads could not be started: {error}") from error
    return pool
