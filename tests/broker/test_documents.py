"""What is written about the broker is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from mqlake.broker.reference import page
from tests.strict_warnings import strict_environment

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_settings_is_as_the_settings_are() -> None:
    text = (DOCS / "broker-settings.md").read_text()
    assert text == page(), "python -m mqlake.broker.reference > docs/broker-settings.md"


def test_every_setting_has_a_meaning() -> None:
    assert re.findall(r"^\| `(\w+)`.*\|\s*\|$", page(), re.MULTILINE) == []


def test_the_program_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (DOCS / "broker.md").read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **strict_environment()},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"(127\.0\.0\.1:\d+\n){2}", done.stdout)
