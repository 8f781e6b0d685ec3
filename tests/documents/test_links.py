"""Links and their anchors lead somewhere, and the index leads to every page."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.documents.pages import ROOT, name, pages, without_blocks

_LINK = re.compile(r"\]\(<?([^)>\s]+)>?\)")
_HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)


def slug(heading: str) -> str:
    """Return the anchor that GitHub makes of a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    found: set[str] = set()
    for heading in _HEADING.findall(without_blocks(page.read_text(encoding="utf-8"))):
        anchor, count = slug(heading), 0
        while anchor in found:
            count += 1
            anchor = f"{slug(heading)}-{count}"
        found.add(anchor)
    return found


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    found: list[str] = []
    for link in _LINK.findall(without_blocks(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", pages(), ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {
        (index.parent / link.partition("#")[0]).resolve()
        for link in _LINK.findall(index.read_text(encoding="utf-8"))
    }
    formats = ROOT / "docs" / "formats"  # these have an index of their own
    wanted = {page for page in (ROOT / "docs").rglob("*.md") if formats not in page.parents}
    assert sorted(map(name, wanted - linked - {index})) == []


def test_what_is_broken(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# The `page`: one\n[a](#the-page-one) [b](#two) [c](other.md) [d](https://x.y/z)\n"
        "```\n[e](nowhere.md)\n```\n[f](page.md#the-page-one)\n"
    )
    assert broken(page) == ["#two", "other.md"]
