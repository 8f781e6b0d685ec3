"""Caching and bounds-checking the kernels."""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mqlake.kernels import cache
from tests.kernels.processes import run


def test_bounds_checked_build_checks() -> None:
    code = """
import numpy as np
from mqlake.kernels import memory
from mqlake.kernels.jit import inlined
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


@pytest.mark.parametrize("folder", ["kernels", "dispatch/compiled", "broker/send/compiled"])
def test_cache_changes_with_sources_and_options(tmp_path: Path, folder: str) -> None:
    source = tmp_path / folder / "a.py"
    source.parent.mkdir(parents=True)
    source.write_text("1")
    first = cache.fingerprint(["x"], tmp_path)
    assert first == cache.fingerprint(["x"], tmp_path)
    assert first != cache.fingerprint(["y"], tmp_path)
    source.write_text("2")
    assert first != cache.fingerprint(["x"], tmp_path)


def test_every_source_of_a_kernel_changes_its_cache() -> None:
    """Their machine code has the constants and the types of what they import."""
    package = cache.PACKAGE
    kernels, others = (
        {path for pattern in patterns for path in package.glob(pattern)}
        for patterns in (cache._KERNELS, cache._SHARED)
    )
    imported = {path for kernel in kernels for path in imports(ast.parse(kernel.read_text()).body)}
    assert imported - kernels - others == {package / "errors.py"}


def imports(body: Sequence[ast.stmt]) -> Iterator[Path]:
    """Yield the sources of this package that are imported, except for types alone."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mqlake"):
            module = cache.PACKAGE.parent / str(node.module).replace(".", "/")
            for name in node.names:
                places = (module / f"{name.name}.py", module.with_suffix(".py"))
                yield next((path for path in places if path.exists()), module / "__init__.py")
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from imports(getattr(node, "body", []))


def test_only_long_unused_caches_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    made = [cache.cache_directory([name]) for name in ("old", "in use", "younger")]
    old, used, younger = (path for path in made if path is not None)
    now = time.time()
    others = [tmp_path / f"kernels-{rest}" for rest in ("of-mine", "a" * 15, "a" * 17, "A" * 16)]
    for path in others:
        path.mkdir(mode=0o700)
    for path, days in ((old, 31), (used, 31), (younger, 29), *((path, 31) for path in others)):
        os.utime(path, (now - days * 86_400,) * 2)
    assert cache.cache_directory(["in use"]) == used
    assert old.exists()
    new = cache.cache_directory(["new"])
    assert {*tmp_path.iterdir()} == {used, younger, new, *others}


def test_cache_goes_where_it_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, home, temporary = (tmp_path / name for name in ("closed", "home", "tmp"))
    closed.write_text("no directory can be made in a file")
    temporary.mkdir()
    monkeypatch.setattr(cache, "PACKAGE", closed)
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
from mqlake.kernels import cache
cache.cache_directory = lambda *_: None
import numpy as np
from mqlake.dispatch.kernel import load
target, buffer = np.zeros(4, np.uint8), np.arange(8, dtype=np.uint8)
load("compiled").copy_records(target, buffer, np.array([1]), np.array([4]))
print(target)
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
