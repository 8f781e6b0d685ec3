"""Executors often have no home, and a package folder that belongs to root."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import mqlake
from mqlake.spark.classic import ClassicSession
from mqlake.spark.session import open_session
from tests.spark import tasks
from tests.spark.servers import ROOT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("alone"),
]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Copy the package; where kernels are kept in it lies a file, which not even root can fill."""
    source = Path(mqlake.__file__).parent
    copy = tmp_path / "copy" / "mqlake"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "kernels" / "__pycache__").touch()
    return copy


def test_kernels_compile_where_neither_package_nor_home_can_be_written(
    package: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    nowhere = {
        "HOME": "/dev/null",
        "XDG_CACHE_HOME": "/dev/null",
        "NUMBA_CACHE_DIR": "/dev/null",
        "TMPDIR": str(temporary),
        "PYTHONPATH": os.pathsep.join([str(package.parent), str(ROOT)]),
    }
    settings = {f"spark.executorEnv.{name}": value for name, value in nowhere.items()}
    settings["spark.python.daemon.module"] = "pyspark.daemon"

    session = open_session("local[2]", settings=settings)
    assert isinstance(session, ClassicSession)
    with session:
        done = session.engine.run(tasks.compiled_here, [(1, 2), (3, 4)], "compile")

    assert [total for total, _, _ in done] == [3, 7]
    for _, used, cache in done:
        assert used == str(package)
        assert Path(cache).parent == temporary / f"mqlake-{os.getuid()}"
    assert list(temporary.rglob("*.nbc"))
