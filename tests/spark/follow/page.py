"""The section of docs/reliability.md that a run of kills writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.reliability import PATH, machine, versions, write_section
from tests.spark.follow.killing import Outcome
from tests.spark.follow.life import BATCH

TITLE = "Killed drivers"

_INTRODUCTION = f"""\
Written by `python -m tests.spark.follow --nightly`.

A store grows, and `mqlake follow` brings it into a table, {BATCH} messages a micro-batch, merging
small files every third one. Its driver is killed (`kill -9`): before or after it asks the table for
its columns, commits a batch, looks for small files or replaces them, or up to seconds later; a seed
draws it. The next one goes on from the checkpoint. After each kill, and when a last driver was let
live, the table is read with the format's own library (delta-rs, PyIceberg).

A violation is a message that is in the table twice, that is not in it at the end, or whose body is
another one, and a driver that ended by itself.
"""


def write(outcomes: Sequence[Outcome], seed: int, path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(outcomes, seed), path)


def _lines(outcomes: Sequence[Outcome], seed: int) -> Iterator[str]:
    kills = sum(outcome.kills for outcome in outcomes)
    violations = sum(outcome.violations for outcome in outcomes)
    packages = ("pyspark", "deltalake", "pyiceberg", "pyarrow")
    yield _INTRODUCTION
    yield f"**{kills:,} kills, {violations} violations**, on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    yield f"Seed {seed}; on {machine()}. {versions()}."
    yield ", ".join(f"{name} {version(name)}" for name in packages) + "."
    yield ""
    yield "| table | kills | lives that committed | messages | files | minutes | violations |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for outcome in outcomes:
        yield (
            f"| {outcome.format} | {outcome.kills:,} | {outcome.growths:,} | {outcome.messages:,}"
            f" | {outcome.files:,} | {outcome.seconds / 60:.1f} | {outcome.violations} |"
        )
    for outcome in outcomes:
        for what in (*outcome.others, *outcome.lost, *outcome.doubled, *outcome.wrong):
            yield f"\n```\n{outcome.format}: {what}\n```"
