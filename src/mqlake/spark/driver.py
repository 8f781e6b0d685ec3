"""The driver of a classic Spark session: its own JVM, with the SparkContext."""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from mqlake.errors import JobError
from mqlake.spark import launch
from mqlake.spark.failure import reason

if TYPE_CHECKING:
    from pyspark import SparkContext

_endings: list[threading.Thread] = []


class Driver:
    """Start a JVM with a SparkContext with these settings; `stop` ends both and removes `scratch`.

    PySpark keeps the JVM and the context as class variables, so a process can have only one. Raises
    JobError if the process already has one, or Spark does not start.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        output: IO[bytes] | int,
        scratch: Path | None = None,
    ) -> None:
        from py4j.protocol import Py4JError
        from pyspark import SparkConf, SparkContext

        wait_until_ended()
        if cast("Any", SparkContext)._active_spark_context is not None:
            raise JobError("this process already has a SparkContext: create a SparkEngine from it")
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        self._scratch = scratch
        self._gateway = launch.start_jvm(conf, output)
        self._jvm: subprocess.Popen[bytes] | None = self._gateway.proc
        try:
            with _interrupts_as_before():
                self.context: SparkContext = SparkContext(conf=conf, gateway=self._gateway)
        except (Py4JError, ValueError) as error:
            self._end_jvm()
            raise JobError(f"Spark did not start: {reason(str(error))}") from None
        if scratch is not None:
            # If this process is killed, the JVM notices, and removes what is then empty.
            self._gateway.jvm.java.io.File(str(scratch)).deleteOnExit()

    def stop(self) -> None:
        """Stop the JVM's part at once, and the rest in the background.

        Java's part takes 0.1 s. PySpark then waits up to a second until a thread of its own
        notices, which a program that is about to exit need not wait for.
        """
        from py4j.protocol import Py4JError

        context = cast("Any", self.context)
        with suppress(Py4JError, OSError):  # The JVM may have died.
            context._jsc.stop()
        context._jsc = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        ending = threading.Thread(target=self._end, name="mqlake-spark-end", daemon=True)
        _endings.append(ending)
        ending.start()

    def _end(self) -> None:
        self.context.stop()
        self._end_jvm()

    def _end_jvm(self) -> None:
        from pyspark import SparkContext

        unset = cast("Any", SparkContext)
        unset._gateway = unset._jvm = None
        self._gateway.shutdown()
        if self._jvm is not None and self._jvm.stdin is not None:
            self._jvm.stdin.close()
            self._jvm.wait()


@contextmanager
def _interrupts_as_before() -> Generator[None]:
    """Undo the handler that a SparkContext sets for Ctrl-C: it calls Java in the middle of another
    call.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def wait_until_ended() -> None:
    """Wait until the background work of earlier sessions is done."""
    while _endings:
        _endings.pop().join()
