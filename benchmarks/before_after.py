"""Did a change make anything slower? `python -m benchmarks.before_after TREE [WAY…]`.

TREE is another working tree of this project, such as `git worktree add` makes of an older commit.
A process of each tree goes a way by turns, A B A B, with the `benchmarks/ways.py` of its tree; an
older commit needs a copy of it. What is compared is processor time, which other programs on the
machine disturb less than elapsed time, and each turn with the one beside it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from benchmarks.ways import WAYS

HERE = Path(__file__).parents[1]
DROPPED = 2
"""First turns, in which kernels are loaded."""


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("ways", nargs="*", metavar="WAY", default=[*WAYS], help=", ".join(WAYS))
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_args()
    print("| way | before, µs | after, µs | ratio, median | quartiles |")
    print("| --- | --- | --- | --- | --- |")
    for way in options.ways:
        turns = _measure(options.tree.resolve(), way, options.turns)
        before, after = (statistics.median(column) for column in zip(*turns, strict=True))
        low, middle, high = statistics.quantiles([new / old for old, new in turns], n=4)
        line = f"| {way} | {before:.2f} | {after:.2f} | {middle:.3f} | {low:.3f} to {high:.3f} |"
        print(line, flush=True)


def _measure(tree: Path, way: str, turns: int) -> list[tuple[float, float]]:
    """Return what each turn took in both trees."""
    with ExitStack() as stack:
        old, new = (stack.enter_context(_start(each, way)) for each in (tree, HERE))
        return [(_turn(old), _turn(new)) for _ in range(turns + DROPPED)][DROPPED:]


def _start(tree: Path, way: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(tree / "src"), str(tree)])
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.ways", way],
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tree,
    )


def _turn(process: subprocess.Popen[str]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


if __name__ == "__main__":
    main()
