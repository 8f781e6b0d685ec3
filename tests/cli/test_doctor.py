"""`mqlake doctor`: a table for people, an object for programs, 1 if something fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.doctor import examine
from mqlake.doctor.finding import CheckResult, Severity
from tests.cli.conftest import Mqlake


def found(monkeypatch: pytest.MonkeyPatch, *findings: CheckResult) -> None:
    monkeypatch.setattr(examine, "examine", lambda *_, **__: iter(findings))


FINE = CheckResult("python", Severity.OK, "CPython 3.11")
NOTE = CheckResult("kernels", Severity.NOTE, "not compiled yet", "compile them")
BAD = CheckResult("java", Severity.PROBLEM, "no Java", "install Java")


def test_the_exit_code_is_one_if_there_is_a_problem(
    mqlake: Mqlake, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(monkeypatch, FINE, NOTE)
    assert mqlake("doctor").code == 0
    found(monkeypatch, FINE, NOTE, BAD)
    ran = mqlake("doctor")
    assert ran.code == 1
    assert "install Java" in ran.out
    assert "1 problem: see above" in ran.out


def test_json_has_what_the_table_has(mqlake: Mqlake, monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, FINE, NOTE, BAD)
    ran = mqlake("doctor", "--json")
    assert ran.code == 1
    assert (ran.json["problems"], ran.json["notes"]) == (1, 1)
    assert ran.json["findings"][2] == {
        "name": "java",
        "state": "problem",
        "found": "no Java",
        "mend": "install Java",
    }


def test_this_machine_is_checked(mqlake: Mqlake, tmp_path: Path) -> None:
    ran = mqlake("doctor", "--store", tmp_path, "--namesrv", "127.0.0.1:1", "--json")
    names = [each["name"] for each in ran.json["findings"]]
    assert ran.code == 1
    assert names[0] == "python"
    assert {"kernels", "java", "ports", f"disk of {tmp_path}", "open files"} <= set(names)
    assert "name server 127.0.0.1:1" in names
