"""docs/reliability.md: one section a proof, each written by its own run and by nothing else."""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

PATH = Path(__file__).parents[1] / "docs" / "reliability.md"

_TOP = """\
# Reliability

Written by `make nightly`, not by hand: each section by the run whose counters it gives.
"""


def write_section(title: str, lines: Iterable[str], path: Path = PATH) -> None:
    """Replace the section `## title` of the page, or add it; the others stay as they are.

    `lines` has no heading of the first or second level.
    """
    section = "\n".join([f"## {title}", "", *lines]).rstrip() + "\n"
    with path.open("a+") as page:
        fcntl.flock(page, fcntl.LOCK_EX)
        page.seek(0)
        sections = _sections(page.read())
        sections[title] = section
        page.truncate(0)
        page.write("\n".join([_TOP, *(sections[title] for title in sorted(sections))]))


def _sections(text: str) -> dict[str, str]:
    """Return title → section, from its heading on to the next one's."""
    found = [f"## {part}".rstrip() + "\n" for part in f"\n{text}".split("\n## ")[1:]]
    return {section.partition("\n")[0].removeprefix("## "): section for section in found}


def machine() -> str:
    """Return what the run ran on."""
    cores = os.cpu_count() or 1
    return f"{platform.system()} {platform.machine()}, {cores} cores"


def versions() -> str:
    """Return the releases that the run's counters are true of."""
    packages = ("mqlake", "numba", "numpy", "msgspec")
    found = [f"{package} {version(package)}" for package in packages]
    return ", ".join([f"Python {platform.python_version()}", *found])
