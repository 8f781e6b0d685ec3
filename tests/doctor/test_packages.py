"""The packages of extras: missing, too old, or new enough."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires

import pytest

from mqlake.doctor import packages
from mqlake.doctor.finding import Severity
from mqlake.doctor.packages import Requirement, extras, is_older, python, requirements

LINES = [
    "msgspec>=0.19",
    "numba>=0.61; extra == 'store'",
    "numpy>=2.0; extra == 'store'",
    "pyiceberg[sql-sqlite]>=0.12; extra == 'iceberg'",
    "pandas<3,>=2.2; extra == 'spark'",
    "uvloop>=0.21; (sys_platform != 'win32') and extra == 'uvloop'",
    "anything; extra == 'odd'",
]


def test_requirements_of_extras_are_read_from_the_metadata() -> None:
    assert list(requirements(LINES)) == [
        Requirement("store", "numba", "0.61"),
        Requirement("store", "numpy", "2.0"),
        Requirement("iceberg", "pyiceberg", "0.12"),
        Requirement("spark", "pandas", "2.2"),
        Requirement("uvloop", "uvloop", "0.21"),
        Requirement("odd", "anything", ""),
    ]


def test_each_extra_of_this_distribution_is_checked() -> None:
    names = {f"extra {each.extra}" for each in requirements(requires("mqlake") or ())}
    assert {each.name for each in extras()} == names
    assert "extra spark" in names


@pytest.mark.parametrize(
    ("found", "least", "expected"),
    [
        ("2.0.0", "2.0", False),
        ("2.0", "2.0.0", False),
        ("1.26.4", "2.0", True),
        ("0.9", "0.10", True),
        ("4.2.0.dev1", "4.2", False),
        ("4.2rc1", "4.2", False),
        ("1", "", False),
    ],
)
def test_releases_are_compared_by_their_numbers(found: str, least: str, expected: bool) -> None:
    assert is_older(found, least) is expected


def test_a_missing_package_is_a_note_and_an_old_one_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    releases = {"numba": "0.62", "numpy": "1.26.4", "pyiceberg": "0.12", "pandas": "2.2"}

    def version(name: str) -> str:
        if name not in releases:
            raise PackageNotFoundError
        return releases[name]

    monkeypatch.setattr(packages, "version", version)
    monkeypatch.setattr(packages, "requires", lambda _: LINES)
    found = {each.name: each for each in extras()}
    assert found["extra store"].state is Severity.PROBLEM
    assert found["extra store"].found == "too old: numpy 1.26.4 (it needs 2.0)"
    assert found["extra store"].mend == "pip install 'mqlake[store]' --upgrade"
    assert found["extra iceberg"].state is Severity.OK
    assert found["extra uvloop"].state is Severity.NOTE
    assert found["extra uvloop"].mend == "pip install 'mqlake[uvloop]'"


def test_the_python_that_runs_is_new_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    assert python().state is Severity.OK
    monkeypatch.setattr(packages, "OLDEST_PYTHON", (4, 0))
    assert python().state is Severity.PROBLEM
