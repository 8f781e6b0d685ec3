"""Carry a task's failure through Spark, and out of its stack traces, as one line.

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
"""Characters. Spark Connect cuts long messages off, and nobody reads them."""

FAILURE = re.compile(r"\bTaskError: (\w+): ([^\n]*)")
"""Class and message of what a task raised."""

SOURCE_FAILURE = re.compile(r"\bmqlake\.errors\.(\w+): ([^\n]*)")
"""The same of a data source, which nothing can be put around."""

RAISED = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception): [^\n]*)", re.MULTILINE)
"""The last line of a Python traceback."""

KNOWN: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"No module named '?mqlake"),
        "the workers' Python cannot import mqlake: install it there, or point PYSPARK_PYTHON to it",
    ),
    (
        re.compile(r"Python worker exited unexpectedly|EOF reached before Python server"),
        "a Python worker died again and again: killed, or out of memory",
    ),
    (
        re.compile(r"ExecutorLostFailure|Remote RPC client disassociated"),
        "an executor was lost again and again: killed, or out of memory",
    ),
    (re.compile(r"Cannot run program \"([^\"]*)\""), "the workers have no program {0}"),
    (re.compile(r"cancelled (?:part of cancelled )?job group"), "the job was cancelled"),
    (
        re.compile(r"stopped SparkContext|SparkContext was shut down|SparkContext has been shut"),
        "Spark has stopped",
    ),
)


class TaskError(Exception):
    """What a task raised: class name and message on one line."""


@dataclass(frozen=True)
class Attempt(Generic[J, R]):
    """A task whose failures survive the way through Spark; pickled with the task by name."""

    task: Callable[[J], R]

    def __call__(self, job: J) -> R:
        """Run the task on one job; raises TaskError for whatever the task raises."""
        try:
            return self.task(job)
        except Exception as error:
            text = " ".join(str(error).split())[:LONGEST_MESSAGE]
            raise TaskError(f"{type(error).__name__}: {text}") from error


@contextmanager
def failures(title: str) -> Generator[None]:
    """Raise what Spark raises in the body as an error for people; `title` names the step."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    # The second also for tasks on RDDs, once there is a SQL session: it changes what Py4J raises.
    except (Py4JJavaError, PySparkException) as error:
        raise failure(title, error) from None
    except (Py4JError, ConnectionError):  # nothing that Java has raised: there is no answer
        raise errors.JobError(f"{title}: Spark's JVM has died: killed, or out of memory") from None


def failure(title: str, spark_error: object) -> errors.MqlakeError:
    """Return the error for people from what Spark raised while the step `title` ran.

    A task's MqlakeError comes back as the same class with the same message; anything else is a
    JobError that names the step.
    """
    text = str(spark_error)
    if found := FAILURE.search(text) or SOURCE_FAILURE.search(text):
        name, message = found[1], found[2].strip()
        ours = getattr(errors, name, None)
        if isinstance(ours, type) and issubclass(ours, errors.MqlakeError):
            return ours(message)
        return errors.JobError(f"{title}: {name}: {message}" if message else f"{title}: {name}")
    return errors.JobError(f"{title}: {reason(text)}")


def reason(text: str) -> str:
    """Return one line that says why Spark failed, from the text of its exception."""
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
    """Skip what Py4J puts before Java's message, and the class name in front of it."""
    for line in lines:
        if line.startswith(("An error occurred while calling", "at ")):
            continue
        return re.sub(r"^:? ?(?:[a-z_$][\w$]*\.)+\w+(?:Exception|Error): ", "", line)
    return "Spark gave no reason"
