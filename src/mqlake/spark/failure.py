"""Carry the error of a task through Spark's stack traces, as one line.

Spark hands the driver the text of a worker's traceback, wrapped in Java's. So a task runs inside
`Attempt`, which turns what it raises into a `TaskError` whose last line has a known form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from mqlake import errors

J = TypeVar("J")
R = TypeVar("R")

LONGEST_MESSAGE = 1000
"""Maximum characters of a message. Spark Connect truncates long messages."""

FAILURE = re.compile(r"\bTaskError: (\w+): ([^\n]*)")
"""Class and message of what a task raised."""

SOURCE_FAILURE = re.compile(r"\bmqlake\.errors\.(\w+): ([^\n]*)")
"""The same for a data source, which cannot be wrapped."""

RAISED = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception): [^\n]*)", re.MULTILINE)
"""The last line of a Python traceback."""

KNOWN: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"No module named '?mqlake"),
        "the workers' Python cannot import mqlake: install it there, or set PYSPARK_PYTHON",
    ),
    (
        re.compile(r"Python worker exited unexpectedly|EOF reached before Python server"),
        "a Python worker died repeatedly: it was killed, or ran out of memory",
    ),
    (
        re.compile(r"ExecutorLostFailure|Remote RPC client disassociated"),
        "an executor was lost repeatedly: it was killed, or ran out of memory",
    ),
    (re.compile(r"Cannot run program \"([^\"]*)\""), "the workers cannot find the program {0}"),
    (re.compile(r"cancelled (?:part of cancelled )?job group"), "the job was cancelled"),
    (
        re.compile(r"stopped SparkContext|SparkContext was shut down|SparkContext has been shut"),
        "Spark has stopped",
    ),
)


LOST_WORKER = re.compile(
    r"Python worker exited unexpectedly|EOF reached before Python server|\bEOFException\b"
    r"|SocketException: (?:Broken pipe|Connection reset)|ExecutorLostFailure"
    r"|Python worker failed to connect back"
)
"""What Spark says if a process of Python, or an executor, was lost."""

_MOST_CAUSES = 20


class LostWorkerError(errors.JobError):
    """A process of Python, or an executor, was lost; trying again may succeed."""


class TaskError(Exception):
    """The error of a task: its class name and message on one line."""


@dataclass(frozen=True)
class Attempt(Generic[J, R]):
    """A task whose errors survive the way through Spark; it is pickled with the task by name."""

    task: Callable[[J], R]

    def __call__(self, job: J) -> R:
        """Run the task on one job; raise TaskError for any error of the task."""
        try:
            return self.task(job)
        except Exception as error:
            text = " ".join(str(error).split())[:LONGEST_MESSAGE]
            raise TaskError(f"{type(error).__name__}: {text}") from error


@contextmanager
def failures(title: str) -> Generator[None]:
    """Raise errors of Spark in the body as readable errors; `title` names the step."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    # The second class also covers tasks on RDDs once there is a SQL session, which changes what
    # Py4J raises.
    except (Py4JJavaError, PySparkException) as error:
        raise failure(title, error) from None
    except (Py4JError, ConnectionError):  # Java did not raise this: there is no answer.
        raise errors.JobError(
            f"{title}: Spark's JVM has died: it was killed, or ran out of memory"
        ) from None


def is_lost_worker(spark_error: object) -> bool:
    """Return whether an error of Spark, or what `failure` made of it, only says that a worker was
    lost, so that trying again may succeed.
    """
    if isinstance(spark_error, errors.MqlakeError):
        return isinstance(spark_error, LostWorkerError)
    text = _with_causes(spark_error)
    is_ours = FAILURE.search(text) or SOURCE_FAILURE.search(text)
    return not is_ours and LOST_WORKER.search(text) is not None


def _with_causes(spark_error: object) -> str:
    """Return the text of an error and of its causes in Java.

    A planner of a stream that is lost ends in an EOFException without a text: only the stack of the
    cause names it.
    """
    texts, each = [str(spark_error)], getattr(spark_error, "_cause", None)
    while each is not None and len(texts) < _MOST_CAUSES:
        texts.append(f"{getattr(each, '_stackTrace', '')}")
        each = getattr(each, "_cause", None)
    return "\n".join(texts)


def failure(title: str, spark_error: object) -> errors.MqlakeError:
    """Return a readable error for what Spark raised while the step `title` ran.

    An MqlakeError of a task is returned as the same class with the same message; anything else
    becomes a JobError that names the step.
    """
    text = str(spark_error)
    if found := FAILURE.search(text) or SOURCE_FAILURE.search(text):
        name, message = found[1], found[2].strip()
        ours = getattr(errors, name, None)
        if isinstance(ours, type) and issubclass(ours, errors.MqlakeError):
            return ours(message)
        return errors.JobError(f"{title}: {name}: {message}" if message else f"{title}: {name}")
    kind = LostWorkerError if is_lost_worker(spark_error) else errors.JobError
    return kind(f"{title}: {reason(text)}")


def reason(text: str) -> str:
    """Return one line with the reason why Spark failed, from the text of its exception."""
    for pattern, words in KNOWN:
        if found := pattern.search(text):
            return words.format(*found.groups())
    _, traceback, rest = text.partition("Traceback (most recent call last):")
    raised = RAISED.findall(rest.partition("\n\tat ")[0]) if traceback else []
    if raised:
        return raised[-1][:LONGEST_MESSAGE]
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(\S[^\n]*)", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = causes[-1] if causes else _first_that_says_something(lines)
    return chosen[:LONGEST_MESSAGE]


def _first_that_says_something(lines: list[str]) -> str:
    """Remove what Py4J puts before Java's message, and the class name."""
    for line in lines:
        if line.startswith(("An error occurred while calling", "at ")):
            continue
        return re.sub(r"^:? ?(?:[a-z_$][\w$]*\.)+\w+(?:Exception|Error): ", "", line)
    return "Spark gave no reason"
