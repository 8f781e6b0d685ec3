"""The example with dbt, if dbt-spark is installed beside mqlake, or `DBT` names its command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.golden import store
from tests.spark.servers import ROOT

DBT = os.environ.get("DBT") or shutil.which("dbt", path=str(Path(sys.executable).parent))
SECONDS = 900

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(3 * SECONDS),
    pytest.mark.skipif(
        DBT is None, reason="dbt is not installed: pip install 'dbt-spark[session]'"
    ),
]


def test_models_over_a_store_are_built_twice(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(ROOT / "examples" / "dbt", project)
    golden = store("rmq5-clean")
    for _ in range(2):  # the second run finds the table in the catalog
        build(project, golden.path)
    table = pq.read_table(project / "spark-warehouse" / "rocketmq.db" / "topics")
    counted = dict(zip(*(table[name].to_pylist() for name in ("topic", "messages")), strict=True))
    assert counted == Counter(message["topic"] for message in golden.messages())


def build(project: Path, path: Path) -> None:
    assert DBT is not None
    run = subprocess.run(
        [DBT, "build", "--profiles-dir", ".", "--vars", f"{{store: {path}}}"],
        cwd=project,
        env=os.environ | {"DO_NOT_TRACK": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "PASS=4 WARN=0 ERROR=0" in run.stdout
