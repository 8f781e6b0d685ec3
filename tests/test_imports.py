"""Each test module is imported first by one process of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.imports import import_in_shares, modules, share

ROOT = Path(__file__).parents[1]


def worker(number: int, count: int) -> dict[str, str]:
    return {"PYTEST_XDIST_WORKER": f"gw{number}", "PYTEST_XDIST_WORKER_COUNT": str(count)}


def test_shares_make_up_the_whole() -> None:
    names = modules(ROOT, "test_*.py")
    assert {"tests.test_imports", "tests.peer.console.test_pages"} <= set(names)
    shares = [share(names, worker(number, 4)) for number in range(4)]
    assert sorted(name for each in shares for name in each) == sorted(names)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_process_that_is_alone_begins_with_none() -> None:
    assert share(modules(ROOT, "test_*.py"), {}) == ()


def test_what_fails_is_left_to_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "tests"
    package.mkdir()
    (package / "test_broken.py").write_text("raise ValueError")
    (package / "test_skipped.py").write_text(
        "import pytest\npytest.skip('no', allow_module_level=True)"
    )
    (package / "test_warning.py").write_text("import warnings\nwarnings.warn('old')")
    (package / "test_whole.py").write_text("")
    monkeypatch.setattr(sys.modules["tests"], "__path__", [str(package)])
    import_in_shares(tmp_path, worker(0, 2))
    import_in_shares(tmp_path, worker(1, 2))
    kept = ("broken", "skipped", "warning", "whole")
    assert [name for name in kept if sys.modules.pop(f"tests.test_{name}", None)] == ["whole"]
