"""The pages of the project, and what is prose in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRONT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")

TEXT = ("", ".md", ".py", ".sql", ".yml", ".ipynb")
"""Suffixes of files that have prose in them."""

_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"``.+?``|`[^`\n]+`")


def pages() -> list[Path]:
    """Return the pages that are written for readers, in order."""
    return [*(ROOT / name for name in FRONT), *sorted((ROOT / "docs").rglob("*.md"))]


def texts() -> list[Path]:
    """Return the pages, and what else has prose for readers: examples, scripts, CI."""
    patterns = ("Makefile", "examples/**/*", "scripts/**/*", ".ci/**/*")
    found = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    prose = {path for path in found if path.suffix in TEXT and "__pycache__" not in path.parts}
    return sorted(prose | set(pages()))


def name(page: Path) -> str:
    """Return the path of a page below the root."""
    return page.relative_to(ROOT).as_posix()


def without_blocks(text: str) -> str:
    """Return Markdown without its fenced blocks; lines keep their numbers."""
    return _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def prose(text: str) -> str:
    """Return Markdown without its code; lines keep their numbers."""
    return _CODE.sub("`…`", without_blocks(text))
