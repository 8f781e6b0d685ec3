"""The section of docs/reliability.md that a run writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.reliability import PATH, machine, versions, write_section
from tests.spark.union.watching import Outcome

TITLE = "Union reads"

_INTRODUCTION = """\
Written by `python -m tests.spark.union --nightly`.

A store grows, and `mqlake follow` brings it into a table, 40 messages a micro-batch, merging small
files every third one. Its driver is killed (`kill -9`) as in "Killed drivers", and the next one
goes on. Meanwhile segments of the log that the table has are deleted, and the table and the log are
read as one, again and again: each time all messages that were ever put are expected, with the
values that the directory source gave.

A violation is a message that a query lacks, has twice, or has with other values, and a driver that
ended by itself.
"""


def write(outcomes: Sequence[Outcome], seed: int, path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(outcomes, seed), path)


def _lines(outcomes: Sequence[Outcome], seed: int) -> Iterator[str]:
    kills = sum(outcome.kills for outcome in outcomes)
    reads = sum(outcome.reads for outcome in outcomes)
    violations = sum(outcome.violations for outcome in outcomes)
    packages = ("pyspark", "deltalake", "pyiceberg", "pyarrow")
    yield _INTRODUCTION
    yield (
        f"**{reads:,} reads during {kills:,} kills, {violations} violations**, on "
        f"{datetime.now(UTC):%Y-%m-%d}."
    )
    yield ""
    yield f"Seed {seed}; on {machine()}. {versions()}."
    yield ", ".join(f"{name} {version(name)}" for name in packages) + "."
    yield ""
    yield (
        "| table | kills | reads | messages put | segments deleted | rows from the table "
        "| rows from the log | minutes | violations |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for one in outcomes:
        yield (
            f"| {one.format} | {one.kills:,} | {one.reads:,} | {one.messages:,} | {one.deleted:,}"
            f" | {one.from_lake:,} | {one.from_log:,} | {one.seconds / 60:.1f}"
            f" | {one.violations} |"
        )
    for one in outcomes:
        for what in (*one.others, *one.lost, *one.doubled, *one.wrong):
            yield f"\n```\n{one.format}: {what}\n```"
