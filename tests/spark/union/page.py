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

Stores grow, and one driver runs `mqlake follow` for each of them into a table of another format, 40
messages per micro-batch, merging small files every third batch. The driver is killed (`kill -9`) as
in "Killed drivers", and the next one continues. Meanwhile, segments of a log that are already in
its table are deleted, and table and log are read as one, again and again. Each read must return all
messages that were ever put, with the values that the directory source returned.

A violation is a message that a query lacks, returns twice, or returns with other values, or a
driver that ends by itself.
"""


def write(outcomes: Sequence[Outcome], seed: int, path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(outcomes, seed), path)


def _lines(outcomes: Sequence[Outcome], seed: int) -> Iterator[str]:
    kills = max(outcome.kills for outcome in outcomes)
    reads = sum(outcome.reads for outcome in outcomes)
    violations = sum(outcome.violations for outcome in outcomes)
    packages = ("pyspark", "deltalake", "pyiceberg", "pyarrow")
    yield _INTRODUCTION
    yield (
        f"**{reads:,} reads during {kills:,} kills of {len(outcomes)} tables, {violations} "
        f"violations**, on {datetime.now(UTC):%Y-%m-%d}."
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
