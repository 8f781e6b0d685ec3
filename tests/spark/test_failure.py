"""One line out of Spark's stack traces. The texts are what PySpark 4.2 gave, shortened."""

from __future__ import annotations

import pickle

import pytest

from mqlake.errors import FormatError, JobError, MqlakeError, StoreError
from mqlake.spark.failure import LONGEST_MESSAGE, Attempt, TaskError, failure, is_lost_worker
from tests.spark import tasks

PY4J = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
ABORTED = (
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 3.0 "
    "failed 4 times, most recent failure: Lost task 1.3 in stage 3.0 (TID 9) (localhost executor "
    "driver): "
)
CONSTRUCTOR = "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
NO_MQLAKE = "the workers' Python cannot import mqlake: install it there, or set PYSPARK_PYTHON"
DRIVER_TRACE = (
    "\nDriver stacktrace:\n\tat org.apache.spark.scheduler.DAGScheduler.x(DAGScheduler.scala:1)\n"
)


def traceback(last: str) -> str:
    return (
        PY4J + ABORTED + "org.apache.spark.api.python.PythonException: Traceback (most recent "
        'call last):\n  File "failure.py", line 63, in __call__\n    return self.task(job)\n'
        "ValueError: original\n\nThe above exception was the direct cause of the following "
        'exception:\n\n    raise TaskError(f"{type(error).__name__}: {text}") from error\n'
        f"mqlake.spark.failure.{last}\n\n\tat org.apache.spark.api.python.X.y(Z.scala:1)\n"
        + DRIVER_TRACE
    )


@pytest.mark.parametrize("error", [StoreError, FormatError, JobError, MqlakeError])
def test_an_error_of_ours_keeps_class_and_message(error: type[MqlakeError]) -> None:
    came = failure("scan", traceback(f"TaskError: {error.__name__}: x/y: offset 7: too short"))
    assert type(came) is error
    assert str(came) == "x/y: offset 7: too short"


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("TaskError: OSError: [Errno 28] No space left", "scan: OSError: [Errno 28] No space left"),
        ("TaskError: KeyError: 'topic'", "scan: KeyError: 'topic'"),
        ("TaskError: MemoryError: ", "scan: MemoryError"),
        ("TaskError: Damage: not an error class", "scan: Damage: not an error class"),
        ("TaskError: annotations: nor this", "scan: annotations: nor this"),
    ],
)
def test_any_other_error_of_a_task_names_the_step(last: str, message: str) -> None:
    came = failure("scan", traceback(last))
    assert type(came) is JobError
    assert str(came) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            PY4J + ABORTED + "org.apache.spark.SparkException: Python worker exited unexpectedly "
            "(crashed). Consider setting 'spark.python.worker.faulthandler.enabled'" + DRIVER_TRACE,
            "a Python worker died repeatedly: it was killed, or ran out of memory",
        ),
        (
            PY4J + ABORTED + "ExecutorLostFailure (executor 3 exited caused by one of the running "
            "tasks) Reason: Remote RPC client disassociated." + DRIVER_TRACE,
            "an executor was lost repeatedly: it was killed, or ran out of memory",
        ),
        (
            PY4J + ABORTED + "org.apache.spark.SparkException: \nError from python worker:\n  "
            "/usr/bin/python3: Error while finding module specification for "
            "'mqlake.spark.daemon' (ModuleNotFoundError: No module named 'mqlake')" + DRIVER_TRACE,
            NO_MQLAKE,
        ),
        (
            PY4J + ABORTED + 'java.io.IOException: Cannot run program "/opt/py/bin/python": '
            "error=2, No such file or directory" + DRIVER_TRACE,
            "the workers cannot find the program /opt/py/bin/python",
        ),
        (
            PY4J + ": org.apache.spark.SparkException: Job 4 cancelled part of cancelled job group "
            "mqlake-1\n\tat org.apache.spark.x(Y.scala:1)",
            "the job was cancelled",
        ),
        (
            CONSTRUCTOR
            + ": org.apache.spark.SparkException: Could not parse Master URL: 'nonsense'\n"
            "\tat org.apache.spark.SparkContext$.x(SparkContext.scala:1)\n",
            "Could not parse Master URL: 'nonsense'",
        ),
        (
            PY4J + ": java.lang.RuntimeException: outer\n\tat a.b(C.java:1)\nCaused by: "
            "java.io.IOException: Disk quota exceeded\n\t... 8 more\n",
            "Disk quota exceeded",
        ),
        (
            PY4J + ABORTED + "org.apache.spark.api.python.PythonException: Traceback (most recent "
            'call last):\n  File "serializers.py", line 454, in loads\n    return '
            "cloudpickle.loads(obj)\nModuleNotFoundError: No module named 'mine'\n\n"
            "\tat org.apache.spark.api.python.X.y(Z.scala:1)\n" + DRIVER_TRACE,
            "ModuleNotFoundError: No module named 'mine'",
        ),
        ("", "Spark gave no reason"),
    ],
)
def test_a_failure_of_spark_itself_is_one_line(text: str, message: str) -> None:
    assert str(failure("scan", text)) == f"scan: {message}"


def test_an_attempt_travels_with_its_task() -> None:
    assert pickle.loads(pickle.dumps(Attempt(tasks.double)))(4) == 8


def test_an_attempt_says_on_one_line_what_went_wrong() -> None:
    with pytest.raises(
        TaskError, match=r"^StoreError: commitlog/1: cannot be read or so it seems$"
    ):
        Attempt(tasks.refuse)(1)


def test_a_long_message_is_cut() -> None:
    def complain(_: int) -> None:
        raise ValueError("x" * 10_000)

    with pytest.raises(TaskError) as raised:
        Attempt(complain)(1)
    assert len(str(raised.value)) == len("ValueError: ") + LONGEST_MESSAGE


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "java.net.SocketException: Broken pipe",
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
    ],
)
def test_a_lost_worker_is_one_before_and_after_the_error_is_readable(text: str) -> None:
    lost = PY4J + ABORTED + text + DRIVER_TRACE
    assert is_lost_worker(lost)
    assert is_lost_worker(failure("follow", lost))


def test_an_error_of_a_task_is_no_lost_worker() -> None:
    ours = traceback("TaskError: StoreError: Python worker exited unexpectedly")
    assert not is_lost_worker(ours)
    assert not is_lost_worker(failure("follow", ours))
