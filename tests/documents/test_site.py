"""The documentation site builds without a warning, and without a network."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.pages import ROOT, pages


def test_the_side_bar_has_the_headings_and_the_pages_of_the_index() -> None:
    conf = runpy.run_path(str(ROOT / "scripts" / "site" / "conf.py"))
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    bar: dict[str, list[str]] = conf["navigation"](index)
    assert bar["How-to guides"][-1] == "docs/arrow-table"
    assert "docs/console" in bar["Reference: Broker and clients"]
    assert bar["Explanation"][0] == "docs/compare"
    listed = [name for names in bar.values() for name in names]
    assert len(listed) == len(set(listed))
    formats = ROOT / "docs" / "formats"
    wanted = {page for page in (ROOT / "docs").rglob("*.md") if formats not in page.parents}
    wanted.add(formats / "README.md")
    assert {page.relative_to(ROOT).with_suffix("").as_posix() for page in wanted} <= set(listed)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_site_has_every_page_and_every_package(tmp_path: Path) -> None:
    options = ("-q", "-W", "--keep-going", "-c", "scripts/site")
    command = [sys.executable, "-m", "sphinx", *options, ".", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    for page in pages():
        assert (tmp_path / page.relative_to(ROOT)).with_suffix(".html").exists()
    reference = (tmp_path / "build" / "api" / "mqlake.client.html").read_text()
    assert 'id="mqlake.client.Consumer"' in reference
