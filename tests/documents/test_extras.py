"""README.md has every extra, and docs/dependencies.md every package that mqlake depends on."""

from __future__ import annotations

import re
import tomllib

from tests.documents.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

_NAME = re.compile(r"[\w.-]+")
_OWN = re.compile(r"mqlake\[([\w,-]+)\]")
_CODE = re.compile(r"`([\w.-]+)(?:\[[\w,-]+\])?`")


def packages(requirements: list[str]) -> set[str]:
    """Return the names of the packages, without mqlake's own extras."""
    found = {match[0] for each in requirements if (match := _NAME.match(each))}
    return found - {"mqlake"}


def installed(extra: str) -> set[str]:
    """Return the names of the packages that an extra installs, with those of extras in it."""
    found = packages(EXTRAS[extra])
    for each in EXTRAS[extra]:
        if own := _OWN.fullmatch(each):
            found |= {name for below in own[1].split(",") for name in installed(below)}
    return found


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_readme_has_every_extra() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Install\n")[2]
    install = text.partition("\n## ")[0]
    named = set(_CODE.findall(install)) | set(re.findall(r"\.\[(\w+)\]", install))
    assert set(EXTRAS) - named == set()


def test_the_page_has_every_package_with_its_extra() -> None:
    lines = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").splitlines()
    rows = [cells(line) for line in lines if line.startswith("| `")]
    stated = {
        (package, extra)
        for package_cell, extra_cell, *_ in rows
        for package in _CODE.findall(package_cell)
        for extra in _CODE.findall(extra_cell) or [""]
    }
    wanted = {(package, "") for package in packages(PROJECT["dependencies"])}
    wanted |= {(package, extra) for extra in EXTRAS for package in packages(EXTRAS[extra])}
    assert wanted - stated == set()
    real = wanted | {(package, extra) for extra in EXTRAS for package in installed(extra)}
    assert stated - real == set()
