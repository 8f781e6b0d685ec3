"""One event loop, on a thread, for all connections of a process."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from threading import Lock
from typing import Any, TypeVar

from mqlake.client import loop_thread
from mqlake.errors import MqlakeError
from mqlake.kombu.errors import UnavailableError, as_kombu_error

T = TypeVar("T")


class KombuThread:
    """An event loop on a daemon thread; `acquire` shares it, `release` ends it."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock, self._has_ended = Lock(), False
        self._thread = loop_thread.LoopThread("mqlake-kombu")

    @property
    def is_own(self) -> bool:
        """Return whether this process started the thread: a fork has no copy of it."""
        return self._process == os.getpid()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine, which is cancelled if this thread is interrupted.

        Raises:
            UnavailableError, RequestRefusedError: for any error of the client.
        """
        future = self.submit(work)
        try:
            return future.result()
        except MqlakeError as error:
            raise as_kombu_error(error) from error
        except CancelledError:
            raise UnavailableError("the connection was closed meanwhile") from None
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine, from any thread.

        Raises:
            UnavailableError: the thread belongs to the parent of this process, or has ended.
        """
        if self.is_own:
            with self._lock:
                if not self._has_ended:
                    return self._thread.begin(work)
        work.close()
        raise UnavailableError("this connection was opened before a fork, or is closed")

    def call(self, function: Callable[[], object]) -> None:
        """Schedule a function on the loop; in a fork, nothing happens."""
        if self.is_own:
            with self._lock:
                if not self._has_ended:
                    self._thread.call(function)

    def end(self) -> None:
        """End the thread; other threads that still wait for it get an UnavailableError."""
        with self._lock:
            self._has_ended = True
        self._thread.close()


class _SharedThread:
    """The thread of this process, and how many connections use it."""

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0
        self._thread: KombuThread | None = None
        self._of_parents: list[KombuThread] = []

    def acquire(self) -> KombuThread:
        with self._lock:
            if self._thread is None:
                self._thread = KombuThread()
            self._users += 1
            return self._thread

    def release(self, thread: KombuThread) -> None:
        with self._lock:
            if thread is not self._thread:
                return
            self._users -= 1
            if self._users:
                return
            self._thread = None
        thread.end()

    def forget(self) -> None:
        """Leave the thread to the parent process; its loop is kept, so that nothing closes it."""
        self._lock, self._users = Lock(), 0
        if self._thread is not None:
            self._of_parents.append(self._thread)
            self._thread = None


_shared = _SharedThread()
acquire, release = _shared.acquire, _shared.release
os.register_at_fork(after_in_child=_shared.forget)
