"""The last lines of a run name what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.skips import summary

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]


def test_packages_are_named_once() -> None:
    reasons = [
        "Skipped: without the real RocketMQ: mvn is not installed (apt-get install maven)",
        "Skipped: without stock clients: mvn is not installed (apt-get install maven)",
        "Skipped: npm is not installed (apt-get install nodejs npm)",
        "Skipped: dbt is not installed: pip install 'dbt-spark[session]'",
        "Skipped: clients of this release cannot",
    ]
    assert summary(reasons) == [
        "5 skipped, 4 of them because a package is missing",
        "apt-get install maven nodejs npm",
        "pip install 'dbt-spark[session]'",
    ]


def test_nothing_skipped_prints_nothing() -> None:
    assert summary([]) == []


def test_a_run_ends_with_the_packages(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest("from tests.conftest import pytest_terminal_summary  # noqa: F401")
    pytester.makepyfile(
        """
        import pytest

        def test_one():
            pytest.skip("no Go (apt-get install golang-go)")

        def test_two():
            pass
        """
    )
    for options in ((), ("-n", "1")):
        ran = pytester.runpytest_subprocess(*options)
        ran.stdout.fnmatch_lines(["*1 skipped, 1 of them because*", "apt-get install golang-go"])
