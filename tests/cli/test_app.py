"""Errors in one line, exit codes, and what is not imported."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mqlake as package
from mqlake.cli import app
from mqlake.errors import StoreError
from tests.cli.conftest import Mqlake
from tests.golden import store

COMMANDS = ("inspect", "verify", "rebuild", "query", "export")
MQLAKE = (sys.executable, "-m", "mqlake")
HEAVY = ("numpy", "numba", "rich", "pyarrow", "pyspark", "py4j")


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help(mqlake: Mqlake, arguments: list[str]) -> None:
    ran = mqlake(*arguments)
    assert ran.code == 0
    assert ran.err == ""
    assert ran.out.startswith("Usage: mqlake ")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_that_parse(mqlake: Mqlake, name: str) -> None:
    examples = app.COMMANDS[name].EXAMPLES
    assert examples
    for example in examples:
        assert example in mqlake(name, "--help").out
        program, command, _, *options = example.split()
        assert (program, command) == ("mqlake", name)
        ran = mqlake(command, "no-such-store", *options)
        assert ran.code == 2
        assert ran.err == "mqlake: no-such-store: the directory does not exist\n"


def test_version(mqlake: Mqlake) -> None:
    assert mqlake("--version") == (0, f"mqlake {package.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "Missing command (see mqlake --help)"),
        (["querry"], "No such command 'querry'. Did you mean 'query'?"),
        (["inspect"], "Missing argument 'STORE' (see mqlake inspect --help)"),
        (["inspect", "a", "b"], "Got unexpected extra argument(s) (b)"),
        (["inspect", "a", "--jsonn"], "No such option: --jsonn (Possible options: --json)"),
        (
            ["verify", "a", "--engine", "flink"],
            "Invalid value for '--engine': 'flink' is not one of",
        ),
        (["query", "a", "--begin", "-1"], "Invalid value for '--begin': -1 is not in the range"),
        (
            ["query", "a", "--begin", "soon"],
            "Invalid value for '--begin': 'soon' is not a valid int",
        ),
        (
            ["query", "a", "--topic", "T", "--key", "k", "--max", "0"],
            "Invalid value for '--max': 0",
        ),
        (["query", "a"], "say what to find"),
        (
            ["rebuild", "a", "--dialect", "3.2"],
            "Invalid value for '--dialect': '3.2' is not one of",
        ),
        (["export", "a"], "Missing option '--out'"),
    ],
)
def test_bad_usage_is_one_line(mqlake: Mqlake, arguments: list[str], reason: str) -> None:
    ran = mqlake(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith(f"mqlake: {reason}")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("command", ["inspect", "verify", "rebuild"])
def test_a_directory_that_is_no_store(mqlake: Mqlake, tmp_path: Path, command: str) -> None:
    ran = mqlake(command, tmp_path)
    assert ran.code == 2
    assert (
        ran.err
        == f"mqlake: {tmp_path}: there is no commitlog/ in it, so it is not a RocketMQ store\n"
    )


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (StoreError("store: two\nlines"), 2, "mqlake: store: two lines\n"),
        (
            PermissionError(errno.EACCES, "Permission denied", "a/b"),
            2,
            "mqlake: a/b: Permission denied\n",
        ),
        (
            ZeroDivisionError("by zero"),
            2,
            "mqlake: unexpected ZeroDivisionError: by zero (MQLAKE_DEBUG=1 shows where)\n",
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_of_the_library(
    mqlake: Mqlake, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("mqlake.store.reader.StoreReader.open", fail)
    ran = mqlake("inspect", "anywhere")
    assert (ran.code, ran.out, ran.err) == (code, "", line)


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLAKE_DEBUG", "1")
    with pytest.raises(StoreError):
        app.run(["inspect", "no-such-store"])


@pytest.mark.parametrize("arguments", [["inspect"], ["inspect", "--json"]])
def test_a_closed_pipe_is_no_error(arguments: list[str]) -> None:
    path = store("rmq5-clean").path
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [*MQLAKE, *arguments, path],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (128 + 13, b"")


def _imported(*arguments: str) -> list[str]:
    program = (
        "import sys; from mqlake.cli.app import run; code = run(sys.argv[1:]); "
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return ran.stderr.strip()


def test_help_imports_nothing_heavy() -> None:
    assert _imported("--help") == "[]"
    assert _imported("query", "--help") == "[]"


@pytest.mark.parametrize(
    "options",
    [
        ["--id", "7F0000010000520800000000002C1471"],
        ["--topic", "TopicA", "--key", "键-3"],
        [
            "--topic",
            "TopicB",
            "--unique-key",
            "FD00000000000000000000000000000276CD5FFD2B276641CE430852",
        ],
        ["--topic", "TopicA", "--queue", "0", "--offset", "3", "--max", "2"],
        ["--topic", "TopicA", "--queue", "0", "--time", "1795206763486"],
        ["--topic", "TopicA", "--begin", "1795206763486", "--end", "1795206763986"],
    ],
)
def test_a_small_query_imports_nothing_heavy(options: list[str]) -> None:
    path = str(store("rmq5-clean").path)
    assert _imported("query", path, *options, "--json") == "[]"
    assert _imported("query", path, *options) == "['rich']"


def test_a_terminal_gets_a_bar_that_goes_away(tmp_path: Path) -> None:
    terminal, stderr = os.openpty()
    answer = tmp_path / "answer"
    with answer.open("wb") as stdout:
        program = subprocess.Popen(
            [*MQLAKE, "verify", store("rmq5-clean").path, "--engine", "local", "--json"],
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
    os.close(stderr)
    drawn = b""
    while chunk := _read(terminal):
        drawn += chunk
    os.close(terminal)
    assert program.wait() == 0
    assert b"index entries" in drawn
    assert drawn.endswith(b"\x1b[2K")
    assert answer.read_bytes().count(b"\n") == 1


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


def test_stdout_that_knows_no_unicode() -> None:
    ran = subprocess.run(
        [*MQLAKE, "inspect", store("rmq5-clean").path],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert b"0:0?10" in ran.stdout
