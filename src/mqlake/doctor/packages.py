"""The Python, and the packages of mqlake's extras."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import NamedTuple

from mqlake.doctor.finding import CheckResult, Severity

OLDEST_PYTHON = (3, 11)

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?(?P<bounds>[^;]*)")
_EXTRA = re.compile(r"extra == '(?P<extra>[^']+)'")
_LEAST = re.compile(r">=\s*(?P<version>[0-9.]+)")


class Requirement(NamedTuple):
    """A package that an extra needs.

    Attributes:
        least: its oldest release that will do; empty if any will.
    """

    extra: str
    package: str
    least: str


def python() -> CheckResult:
    """Report the Python that runs this."""
    name = f"{platform.python_implementation()} {platform.python_version()}"
    if sys.version_info < OLDEST_PYTHON:
        least = ".".join(map(str, OLDEST_PYTHON))
        return CheckResult(
            "python", Severity.PROBLEM, f"{name} is too old", f"use Python {least} or newer"
        )
    return CheckResult("python", Severity.OK, name)


def extras() -> Iterator[CheckResult]:
    """Report each extra: whether all of its packages are installed, and new enough.

    An extra of which nothing is installed is a note. One of which a package is too old is a
    problem: commands find it, and fail.
    """
    needed: dict[str, list[Requirement]] = {}
    for each in requirements(requires("mqlake") or ()):
        needed.setdefault(each.extra, []).append(each)
    for extra, parts in sorted(needed.items()):
        yield _extra(extra, parts)


def requirements(lines: list[str] | tuple[()]) -> Iterator[Requirement]:
    """Read the requirements of extras from a distribution's metadata; skip all others."""
    for line in lines:
        extra, found = _EXTRA.search(line), _REQUIREMENT.match(line)
        if extra is None or found is None:
            continue
        least = _LEAST.search(found["bounds"])
        yield Requirement(extra["extra"], found["name"], least["version"] if least else "")


def _extra(extra: str, parts: list[Requirement]) -> CheckResult:
    name, mend = f"extra {extra}", f"pip install 'mqlake[{extra}]'"
    installed = {part.package: _installed(part.package) for part in parts}
    missing = [package for package, found in installed.items() if found is None]
    if missing:
        return CheckResult(name, Severity.NOTE, f"not installed: {', '.join(missing)}", mend)
    old = [
        f"{part.package} {found} (it needs {part.least})"
        for part in parts
        if (found := installed[part.package]) and is_older(found, part.least)
    ]
    if old:
        return CheckResult(
            name, Severity.PROBLEM, f"too old: {', '.join(old)}", f"{mend} --upgrade"
        )
    return CheckResult(
        name, Severity.OK, ", ".join(f"{each} {found}" for each, found in installed.items())
    )


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def is_older(found: str, least: str) -> bool:
    """Return whether a release is older than another one; only their numbers are compared."""
    return _numbers(found) < _numbers(least)


def _numbers(release: str) -> list[int]:
    found = re.match(r"[0-9.]*", release)
    numbers = [int(part) for part in (found[0] if found else "").split(".") if part]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers
