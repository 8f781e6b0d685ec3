"""Export messages to Parquet files, one for each split (docs/how-to)."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mqlake.formats.damage import Damage
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.engine import Engine
from mqlake.jobs.export.parquet import PartFile, write_part
from mqlake.jobs.export.selection import Selection
from mqlake.jobs.export.splits import ExportJob, ExportPart, export_splits
from mqlake.jobs.queues.deletions import Deletions
from mqlake.jobs.source import StoreSource, open_source
from mqlake.jobs.splits.log_end import damage, log_end
from mqlake.jobs.splits.splits import Job, clip, jobs_of, join_gaps, plan, run_until_met, spans
from mqlake.jobs.swap import require_empty, written_alone

SCRATCH = "_mqlake-export"
"""Readers of Parquet directories ignore names that begin with an underscore."""


class ExportReport(msgspec.Struct, frozen=True, rename="camel"):
    """What an export wrote.

    Attributes:
        output: the directory; all its Parquet files have the same columns.
        files: Parquet files.
        bytes_written: the size of the files.
        deleted_topic_messages: selected messages of topics that were deleted after they were put,
            which are left out.
        messages: the number of rows that were written.
        stored_bodies: messages whose bodies could not be decompressed, and are as stored.
        records: the number of log records that were examined.
        log_end: physical offset at which RocketMQ ends the log; later records are not exported.
        damage: stretches of the log that could not be exported.
    """

    store: str
    output: str
    files: int
    bytes_written: int
    messages: int
    deleted_topic_messages: int
    stored_bodies: int
    records: int
    bytes_scanned: int
    log_end: int
    damage: list[Damage]


@reports_disk_faults
def export(
    store: Path,
    engine: Engine,
    *,
    out: Path,
    topics: Sequence[str] = (),
    tag: str | None = None,
    key: str | None = None,
    begin: int | None = None,
    end: int | None = None,
    tasks: int | None = None,
    decompress: bool = True,
) -> ExportReport:
    """Write the messages of a store to Parquet files in `out`, which must be empty or absent.

    The files appear when all are complete. Nothing in the store is changed, and a broker may run on
    it. Records with a damaged body are left out.

    Args:
        topics: only messages of these; if empty, of all.
        tag: only messages with this tag; `A || B` for one of several.
        key: only messages with this among their keys, or as their unique key.
        begin, end: only messages stored in this range, in milliseconds, both inclusive.
        tasks: the number of tasks that the log is divided into; by default, about one for each
            core.
        decompress: whether bodies are decompressed, and the messages of inner batches are rows;
            otherwise rows are records as stored.

    Raises:
        StoreError: the store cannot be read.
        JobError: the store has no commit log, `out` is not empty, or pyarrow is not installed.
    """
    out = out.absolute()
    with open_source(store) as source, _scratch_in(out) as scratch:
        selection = Selection(tuple(topics), _tags(tag), key or None, begin, end)
        dead = Deletions(source, source.undispatched_from).dead
        template = ExportJob(source.path, (), str(scratch), selection, dead, decompress)
        return _run(engine, source, template, out, tasks)


def _run(
    engine: Engine, source: StoreSource, template: ExportJob, out: Path, tasks: int | None
) -> ExportReport:
    def run(jobs: Sequence[Job]) -> list[ExportPart]:
        todo = [msgspec.structs.replace(template, splits=splits) for splits in jobs]
        return engine.run(export_splits, todo, "messages")

    covered = spans(source.log)
    parts = run_until_met(run, plan(covered, engine.parallelism, tasks))
    gaps = join_gaps([part.scanned for part in parts])
    end = log_end(source.log, gaps, source.recovery_start)
    last = max((part.last_record for part in parts), default=-1)
    if last >= end:
        parts = run(clip(jobs_of(parts), end))
    files = [file for part in parts for file in part.files]
    if not files:
        files.append(write_part(Path(template.directory), "part-empty.parquet", iter(()), None))
    _move(files, out)
    return ExportReport(
        store=source.path,
        output=str(out),
        files=len(files),
        bytes_written=sum((out / file.name).stat().st_size for file in files),
        messages=sum(file.messages for file in files),
        deleted_topic_messages=sum(part.dead for part in parts),
        stored_bodies=sum(part.stored_bodies for part in parts),
        records=sum(part.records for part in parts),
        bytes_scanned=sum(span.data_end - span.base for span in covered),
        log_end=end,
        damage=damage(source.log, gaps, last),
    )


def _move(files: Sequence[PartFile], out: Path) -> None:
    """Move complete files into place; after a failure, none is there: the export can run again."""
    try:
        for file in files:
            Path(file.path).replace(out / file.name)
    except OSError:
        for file in files:
            (out / file.name).unlink(missing_ok=True)
        raise


@contextmanager
def _scratch_in(out: Path) -> Generator[Path]:
    """Yield an empty scratch directory in `out`, which must contain nothing else."""
    require_empty(out, SCRATCH)
    scratch = out / SCRATCH
    with written_alone(out, SCRATCH):
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            scratch.mkdir()
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _tags(expression: str | None) -> tuple[str, ...]:
    tags = tuple(tag.strip() for tag in (expression or "").split("||") if tag.strip())
    return () if "*" in tags else tags
