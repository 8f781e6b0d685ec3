"""Runs share a page and leave each other's sections alone."""

from __future__ import annotations

from pathlib import Path

from tests.reliability import PATH, write_section


def test_sections_are_written_apart(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write_section("Hostile input", ["**2 inputs**", "", "### Targets", "", "- one"], page)
    write_section("Crashes", ["**5 images**", ""], page)
    write_section("Hostile input", ["**3 inputs**", "", "### Targets"], page)
    _, _, sections = page.read_text().partition("\n\n")[2].partition("\n\n")
    assert sections == (
        "## Crashes\n\n**5 images**\n\n## Hostile input\n\n**3 inputs**\n\n### Targets\n"
    )


def test_the_page_is_made_of_such_sections(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PATH.read_text())
    write_section("Zero", [], page)
    assert page.read_text() == PATH.read_text() + "\n## Zero\n"
