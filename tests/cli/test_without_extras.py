"""What plain `pip install mqlake` can do, and what it says where an extra is missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mqlake as mqlake_package
from mqlake.exports import EXTRAS, missing_extra
from mqlake.testing import RunningBroker, broker

HIDDEN = (
    *("cramjam", "llvmlite", "numba", "numpy", "pandas", "pyarrow", "pyspark", "uvloop"),
    *("duckdb", "jinja2", "polars", "starlette", "uvicorn"),
)
WITHOUT = f"""\
import sys
sys.modules.update(dict.fromkeys({HIDDEN}))
"""
PROGRAM = f"{WITHOUT}from mqlake.cli.app import run; sys.exit(run(sys.argv[1:]))"


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as found:
        yield found


def mqlake(*words: str, given: bytes = b"") -> tuple[int, str, str]:
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_messages_are_sent_and_consumed(running: RunningBroker) -> None:
    names = ("-n", running.name_server)
    assert mqlake("produce", "light", *names, given=b"one\ntwo\n")[0] == 0
    code, out, err = mqlake(
        "consume", "light", *names, "--group", "g", "--from", "earliest", "--max", "2"
    )
    assert (code, sorted(out.split())) == (0, ["one", "two"]), err
    assert mqlake("tail", "light", *names, "--from", "earliest", "--max", "2")[0] == 0


def test_admin_commands_work(running: RunningBroker) -> None:
    code, out, err = mqlake("admin", "clusterList", "-n", running.name_server)
    assert (code, "broker-a" in out) == (0, True), err


def test_the_doctor_needs_no_extra() -> None:
    code, out, err = mqlake("doctor", "--json")
    assert code in (0, 1), err
    assert "so stores cannot be read" in out


def test_a_command_that_needs_an_extra_says_which(tmp_path: Path) -> None:
    for words in (
        ("broker", "--store", str(tmp_path / "store")),
        ("verify", str(tmp_path), "--engine", "local"),
    ):
        (tmp_path / "commitlog").mkdir(exist_ok=True)
        code, out, err = mqlake(*words)
        assert (code, out) == (2, "")
        *before, line = err.splitlines()
        assert all(" loading the broker" in one for one in before)
        assert line.startswith("mqlake: ")
        assert err.endswith("is not installed: pip install 'mqlake[store]'\n")


def test_a_package_that_needs_an_extra_says_which() -> None:
    code = f"{WITHOUT}from mqlake.store import MessageStore"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 1
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: mqlake.store: num")
    assert last.endswith("is not installed: pip install 'mqlake[store]'")


def test_frames_of_other_libraries_say_which_extra_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "commitlog").mkdir()
    table = mqlake_package.open(tmp_path)
    for name, frame in (
        ("polars", table.to_polars),
        ("polars", table.scan_polars),
        ("duckdb", table.to_duckdb),
    ):
        monkeypatch.setitem(sys.modules, name, None)
        why = f"{name} is not installed: pip install 'mqlake[{name}]'"
        with pytest.raises(ModuleNotFoundError) as raised:
            frame()
        assert str(raised.value) == why


def test_functions_for_spark_say_that_it_is_missing() -> None:
    code = f"{WITHOUT}from mqlake.spark import RocketMQDataSource"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    last = done.stderr.decode().splitlines()[-1]
    assert last.endswith("pyspark is not installed: pip install 'mqlake[spark]'")


def test_other_missing_modules_are_reported_as_they_are() -> None:
    assert set(EXTRAS) <= set(HIDDEN)
    for error in (ModuleNotFoundError(name="nothing"), ModuleNotFoundError("no name")):
        assert missing_extra(error) is None
