"""Embedded sessions as programs use them: quiet, private, and gone when the program is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pyspark
import pytest

from mqlake.errors import JobError
from mqlake.spark.classic import YARN_SETTINGS, ClassicSession, local_master
from mqlake.spark.session import open_session
from tests.spark import tasks
from tests.spark.servers import ROOT
from tests.until import wait_until


def test_a_master_of_no_kind_is_one_line() -> None:
    with pytest.raises(
        JobError, match=r"^'nonsense' is not a Spark master: use local\[n\], spark://"
    ):
        open_session("nonsense")


@pytest.mark.parametrize(
    ("master", "meant"),
    [
        (None, "local[*,4]"),
        ("local", "local[1,4]"),
        ("local[3]", "local[3,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", None),
        ("yarn", None),
        ("k8s://https://host:443", None),
        ("local-cluster[2,1,1024]", None),
    ],
)
def test_local_masters_repeat_failed_tasks(master: str | None, meant: str | None) -> None:
    assert local_master(master) == meant


def test_a_master_that_does_not_answer_is_one_line() -> None:
    # Before a session is tried, which would take a minute and fail with a trace.
    with pytest.raises(JobError, match=r"^no Spark master answers at spark://127.0.0.1:9:"):
        open_session("spark://127.0.0.1:9")


def test_yarn_without_its_configuration_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in YARN_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(JobError, match=r"^yarn: set HADOOP_CONF_DIR to the directory of "):
        open_session("yarn")


def test_no_pyspark_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(JobError, match=r"^PySpark is not installed: pip install 'mqlake\[spark\]'"):
        open_session()


def run(program: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a directory and with temporary files of its own."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    (tmp_path / "work").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path / "work",
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


USUAL = """
import json, tempfile
from pathlib import Path
from mqlake.spark.session import open_session
from tests.spark import tasks
with open_session("local[2]", settings={"spark.log.level": "INFO"}) as session:
    results = session.engine.run(tasks.double, [1, 2, 3], "double")
    places = session.engine.run(tasks.place_of, ["pyspark", "tests"], "look at the path")
    rows = session.spark.sql("select 1").count()
    modes = [path.stat().st_mode & 0o777 for path in Path(tempfile.gettempdir()).glob("mqlake-*")]
print(json.dumps([results, rows, modes, places]))
"""
FOR_ANOTHER_SPARK = {
    "SPARK_HOME": "/nonexistent/spark",
    "SPARK_CONF_DIR": "/nonexistent/conf",
    "SPARK_LOCAL_DIRS": "/nonexistent/local",
    "PYSPARK_PYTHON": "/nonexistent/python",
    "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
}


@pytest.mark.spark
def test_a_session_is_quiet_private_and_leaves_nothing(tmp_path: Path) -> None:
    """Settings for another Spark do not matter; all that this one says is in the log asked for.

    Workers import the PySpark that is installed, not Spark's zip of it, and what PYTHONPATH names.
    """
    log = tmp_path / "spark.log"
    own = {"PYTHONWARNINGS": "error", "MQLAKE_SPARK_LOG": str(log)}

    done = run(USUAL, tmp_path, **FOR_ANOTHER_SPARK, **own)

    assert done.stderr == ""
    *rest, places = json.loads(done.stdout)
    assert rest == [[2, 4, 6], 1, [0o700]]
    assert places == [pyspark.__file__, str(ROOT / "tests" / "__init__.py")]
    assert "Running Spark version" in log.read_text()
    assert list((tmp_path / "work").iterdir()) == []
    wait_until(lambda: list((tmp_path / "tmp").iterdir()) == [])


@pytest.mark.spark
@pytest.mark.usefixtures("alone")
def test_a_jvm_that_is_killed_is_one_line(tmp_path: Path) -> None:
    mark = tmp_path / "running"
    session = open_session("local[1]", progress=lambda *step: None)
    assert isinstance(session, ClassicSession)
    with session:
        jvm = int(session.context._jvm.java.lang.ProcessHandle.current().pid())

        def kill() -> None:
            wait_until(mark.exists)
            os.kill(jvm, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            with pytest.raises(JobError, match=r"^stay: Spark's JVM has died"):
                session.engine.run(tasks.stay, [str(mark)], "stay")
        finally:
            killer.join()


LONG = """
import sys
from mqlake.spark.session import open_session
from tests.spark import tasks
with open_session("local[1]") as session:
    try:
        session.engine.run(tasks.stay, sys.argv[1:], "stay")
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sent", "said", "code"),
    [
        pytest.param(
            signal.SIGINT, "interrupted\n", 0, id="interrupted", marks=pytest.mark.nightly
        ),
        pytest.param(signal.SIGKILL, "", -signal.SIGKILL, id="killed"),
    ],
)
def test_a_program_that_is_stopped_takes_its_spark_along(
    tmp_path: Path, sent: signal.Signals, said: str, code: int
) -> None:
    (tmp_path / "tmp").mkdir()
    mark = tmp_path / "running"
    with subprocess.Popen(
        [sys.executable, "-c", LONG, mark],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background makes them ignore an interrupt.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as program:
        try:
            wait_until(lambda: mark.exists() or program.poll() is not None)
            family = descendants(program.pid)
            assert len(family) >= 3  # the JVM, its Python daemon, a worker
            program.send_signal(sent)
            assert program.communicate(timeout=60) == (said, "")
        finally:
            program.kill()
    assert program.returncode == code
    wait_until(lambda: not any(map(alive, family)))
    wait_until(lambda: list((tmp_path / "tmp").iterdir()) == [])


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def descendants(process: int) -> set[int]:
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # gone meanwhile
            parents[int(path.parent.name)] = int(path.read_text().rpartition(") ")[2].split()[1])
    family = {process}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family - {process}
