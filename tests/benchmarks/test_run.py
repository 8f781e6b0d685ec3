from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_small_run_without_java_and_spark_measures_and_publishes_nothing(tmp_path: Path) -> None:
    published = [ROOT / "docs" / "benchmarks.md", ROOT / "benchmarks" / "results.json"]
    before = [path.stat().st_mtime_ns if path.exists() else None for path in published]
    command = [sys.executable, "-m", "benchmarks", "rebuild", "verify", "memory"]
    options = ["--size", "4MiB", "--repetitions", "1", "--directory", str(tmp_path)]
    without = ["--without", "java", "--without", "spark"]
    done = subprocess.run(
        [*command, *options, *without], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for title in ("## Rebuild", "## Verify", "## Memory"):
        assert title in done.stdout
    assert "| verify, mqlake, one process | ≥ 1.50 GB/s |" in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert [path.stat().st_mtime_ns if path.exists() else None for path in published] == before


def test_an_unknown_name_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no benchmark called nothing" in done.stderr
