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

Stores grow, and one driver runs `mqlake follow` for each of them, {BATCH} messages per micro-batch,
merging small files every third batch. Each store has a table of another kind; tables "by key" have
the newest message of each key (`--upsert-by`). The driver is killed (`kill -9`) at a random moment
of one of them: before or after it reads the table's columns, commits a batch, lists small files or
replaces them, or up to seconds later. The next driver continues at the checkpoints. After each
kill, and after a last driver that is not killed, the tables are read with the format's own library
(delta-rs, PyIceberg, pyarrow).

A violation is a message that is in a table twice, that is missing at the end, or whose body is
different, a key that is there twice or does not have its newest message at the end, or a driver
that ends by itself.
"""


def write(outcomes: Sequence[Outcome], seed: int, path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(outcomes, seed), path)


def _lines(outcomes: Sequence[Outcome], seed: int) -> Iterator[str]:
    kills = max(outcome.kills for outcome in outcomes)
    violations = sum(outcome.violations for outcome in outcomes)
    packages = ("pyspark", "deltalake", "pyiceberg", "pyarrow")
    yield _INTRODUCTION
    yield (
        f"**{kills:,} kills of {len(outcomes)} tables, {violations} violations**, on "
        f"{datetime.now(UTC):%Y-%m-%d}."
    )
    yield ""
    yield f"Seed {seed}; on {machine()}. {versions()}."
    yield ", ".join(f"{name} {version(name)}" for name in packages) + "."
    yield ""
    yield "| table | kills | drivers that committed | messages | files | minutes | violations |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for outcome in outcomes:
        yield (
            f"| {outcome.kind} | {outcome.kills:,} | {outcome.growths:,} | {outcome.messages:,}"
            f" | {outcome.files:,} | {outcome.seconds / 60:.1f} | {outcome.violations} |"
        )
    for outcome in outcomes:
        for what in (*outcome.others, *outcome.lost, *outcome.doubled, *outcome.wrong):
            yield f"\n```\n{outcome.kind}: {what}\n```"
