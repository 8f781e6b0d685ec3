"""The documentation site builds without a warning, and without a network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.pages import ROOT, pages

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


def test_the_site_has_every_page_and_every_package(tmp_path: Path) -> None:
    options = ("-q", "-W", "--keep-going", "-c", "scripts/site")
    command = [sys.executable, "-m", "sphinx", *options, ".", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    for page in pages():
        assert (tmp_path / page.relative_to(ROOT)).with_suffix(".html").exists()
    reference = (tmp_path / "build" / "api" / "mqlake.client.html").read_text()
    assert 'id="mqlake.client.Consumer"' in reference
