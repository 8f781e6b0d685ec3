"""`mqlake broker`: options that cannot be. What it does when it runs: tests/programs."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from mqlake.cli.app import FAILED, run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "brokerName"], "--set needs NAME=VALUE, not 'brokerName'"),
        (["--set", "brokerId=1"], "setting brokerId: 1 is a slave's"),
        (["-c", "missing.conf"], "missing.conf: No such file or directory"),
        (["--port", "70000"], "--port"),
        (["--port", "2"], "setting listenPort"),
    ],
)
def test_invalid_settings_are_an_error_of_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGTERM)
    assert run(["broker", "--store", str(tmp_path / "store"), *arguments]) == FAILED
    assert signal.getsignal(signal.SIGTERM) == handler
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("mqlake: ")
    assert words in line
    assert not (tmp_path / "store").exists()
