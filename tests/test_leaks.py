"""The search for passwords in what tests show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.leaks import leaked

ROOT = Path(__file__).parents[1]
WORD = "dora-password"


@pytest.mark.parametrize(
    "text",
    ["root-password-1", "password=secret-of-root-51d0", '{"k":"secret-12345"}', "x billing-secret"],
)
def test_passwords_of_tests_are_known_by_their_form(text: str) -> None:
    assert leaked(text) is not None


@pytest.mark.parametrize(
    "text", ["a wrong password", "MQLAKE_SECRET_KEY", "docs/user-password.md", "the secret-", ""]
)
def test_other_words_are_not(text: str) -> None:
    assert leaked(text) is None


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (f'print("{WORD}")', "Captured stdout call"),
        (f'import logging; logging.getLogger("mqlake").warning("{WORD}")', "Captured log call"),
        (f'import subprocess; subprocess.run(["true", "mqlake", "{WORD}"])', "command line"),
        (f'(tmp_path / "broker.log").write_text("{WORD}")', "broker.log"),
        (f'(tmp_path / "users.json").write_text("{WORD}")', None),
        ("print('nothing')", None),
    ],
)
def test_a_test_that_shows_one_fails(tmp_path: Path, body: str, where: str | None) -> None:
    (tmp_path / "test_it.py").write_text(f"def test_it(tmp_path):\n    {body}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.leaks", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "-c", "/dev/null", str(tmp_path / "test_it.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (1 if where else 0), done.stdout + done.stderr
    if where:
        assert "a password is in" in done.stdout
        assert where in done.stdout
