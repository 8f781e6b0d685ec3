"""Choosing, caching and bounds-checking the kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.dispatch import cache, kernel
from mqlake.errors import MqlakeError

TESTS = Path(__file__).parent


def run(code: str, **environment: str) -> str:
    """Run Python code in a process of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_kernels_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLAKE_KERNEL", "reference")
    assert kernel.load().__name__ == "mqlake.dispatch.reference"
    assert kernel.load("compiled").__name__ == "mqlake.dispatch.compiled.calls"
    with pytest.raises(MqlakeError, match="no kernels called 'fast'"):
        kernel.load("fast")


def test_plain_scan_imports_neither_numpy_nor_numba() -> None:
    code = "import sys, mqlake.dispatch.reference; print({'numpy', 'numba'} & set(sys.modules))"
    assert run(code) == "set()"


@pytest.mark.nightly  # tests/hostile scans so in each run
@pytest.mark.timeout(600)
def test_bounds_checked_build() -> None:
    """All kernel tests once more, with each load and store checked."""
    files = [str(path) for path in sorted(TESTS.glob("test_*.py")) if path.name != "test_kernel.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-k", "not reference", "-n0", *files],
        env=os.environ | {"MQLAKE_BOUNDSCHECK": "1"},
        cwd=TESTS.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_bounds_checked_build_checks() -> None:
    code = """
import numpy as np
from mqlake.dispatch.compiled import memory
from mqlake.dispatch.compiled.jit import inlined
load = memory.load_i64
@inlined
def call(buffer, at):
    return load(buffer, at)
for at in (-1, 3, 1 << 40):
    try:
        call(np.zeros(10, np.uint8), at)
    except IndexError:
        print(at)
print(call(np.zeros(10, np.uint8), 2))
"""
    assert run(code, MQLAKE_BOUNDSCHECK="1").split() == ["-1", "3", str(1 << 40), "0"]


def test_cache_changes_with_sources_and_options(tmp_path: Path) -> None:
    sources = tmp_path / "dispatch" / "compiled"
    sources.mkdir(parents=True)
    (sources / "a.py").write_text("1")
    first = cache.fingerprint(["x"], sources)
    assert first == cache.fingerprint(["x"], sources)
    assert first != cache.fingerprint(["y"], sources)
    (sources / "a.py").write_text("2")
    assert first != cache.fingerprint(["x"], sources)


def test_cache_goes_where_it_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, home, temporary = (tmp_path / name for name in ("closed", "home", "tmp"))
    closed.write_text("no directory can be made in a file")
    temporary.mkdir()
    monkeypatch.setattr(cache, "SOURCES", closed / "compiled")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(cache.tempfile, "tempdir", str(temporary))
    found = cache.cache_directory(["x"])
    assert found is not None
    assert found.parent == home / ".cache" / "mqlake"

    monkeypatch.setenv("HOME", str(closed))
    found = cache.cache_directory(["x"])
    assert found is not None
    assert found.parent.parent == temporary

    monkeypatch.setattr(cache.tempfile, "tempdir", str(closed))
    assert cache.cache_directory(["x"]) is None


def test_cache_in_a_directory_of_others_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies in the cache is executed."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    mine = cache.cache_directory(["x"])
    assert mine is not None
    assert mine.parent == tmp_path / "mine"
    mine.chmod(0o777)
    theirs = cache.cache_directory(["x"])
    assert theirs is None or theirs.parent != tmp_path / "mine"


def test_kernels_work_without_any_cache() -> None:
    code = """
from mqlake.dispatch import cache
cache.cache_directory = lambda *_: None
import numpy as np
from mqlake.dispatch.kernel import load
print(load("compiled").copy_spans(np.arange(8, dtype=np.uint8), np.array([1]), np.array([4]))[1])
"""
    assert run(code) == "[1 2 3 4]"


def test_caches_of_other_numba_functions_stay_where_they_are() -> None:
    code = """
import numba
before = numba.config.CACHE_DIR
import mqlake.dispatch.compiled.calls
print(numba.config.CACHE_DIR == before)
"""
    assert run(code) == "True"
