"""Copy a store's closed segments and derived files to another place, such as an object store.

A segment is closed when the log continues in the next one. Each closed segment is synced, copied
and then listed in the archive's `manifest.json` with its size, its SHA-256, its physical offsets,
and the store times of its records. The command copies what the archive lacks. If it is killed, the
next run continues. A broker may write the store and remove expired files meanwhile.

`query`, `inspect`, the Spark source and `mqlake.open` read an archive as a store, alone or together
with the live directory (docs/archive.md).

JSON: `store`, `archive`, `minOffset`, `maxOffset` (physical offsets), `segments`, `records`,
`damagedBytes`, `minStoreTimestamp`, `maxStoreTimestamp`, `files` (derived files and settings),
`bytesStored`, `newSegments`, `newFiles` and `bytesCopied` (what this command copied), `missing`
(objects with `start` and `end`: ranges of the log that were removed before they were archived),
`seconds`; with `--verify` also `objects`, `bytesRead` and `damage` (objects with `file`, `offset`,
`bytes`, `reason`).

The exit code is 1 if `--verify` found damage.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.options import UsageError, settings_given
from mqlake.cli.output import draw, timed, write_json

EXAMPLES = (
    "mqlake archive /data/rocketmq/store --to s3://bucket/broker-a",
    "mqlake archive STORE --to s3a://bucket/broker-a --set fs.s3a.endpoint=http://127.0.0.1:9000",
    "mqlake archive STORE --to /mnt/backup/broker-a --verify",
)
DAMAGE_FOUND = 1


def archive(
    store: shared.Store,
    to: Annotated[
        str, typer.Option(metavar="PLACE", help="Directory or URL of the store's archive.")
    ],
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="After copying, read every object of the archive, and compare its checksum.",
        ),
    ] = False,
    override: shared.ObjectStoreSettings = None,
    progress: shared.Progress = None,
    json: shared.Json = False,
) -> int:
    """Copy a store's closed segments and derived files to a directory or object store."""
    _check_is_elsewhere(store, to)

    from mqlake.cli.progress import LOADING, tell_compilation
    from mqlake.cli.progress import progress as shown
    from mqlake.storage.remote.object_stores import check_settings

    settings = check_settings(settings_given(override))
    start = time.perf_counter()
    with shown(progress, LOADING) as report_progress:
        tell_compilation()
        from mqlake.jobs.archive.check import check
        from mqlake.jobs.archive.job import archive as run
        from mqlake.jobs.local import LocalEngine
        from mqlake.storage.object_target import open_target

        target = open_target(to, settings)
        report = run(store, target, report_progress)
        engine = LocalEngine(progress=report_progress)
        checked = check(target.directory, engine) if verify else None
    seconds = time.perf_counter() - start
    if json:
        found = timed(report, seconds)
        if checked is not None:
            found |= {
                "objects": checked.objects,
                "bytesRead": checked.bytes_read,
                "damage": checked.damage,
            }
        write_json(found)
    else:
        from mqlake.cli.views.archive import view

        draw(view(report, checked, seconds))
    return DAMAGE_FOUND if checked and checked.damage else 0


def _check_is_elsewhere(store: Path, to: str) -> None:
    if "://" in to and not to.startswith("file:"):
        return
    from urllib.parse import unquote, urlsplit

    target = Path(unquote(urlsplit(to).path) if to.startswith("file:") else to).resolve()
    if target == store.resolve() or store.resolve() in target.parents:
        raise UsageError(
            f"--to {to}: an archive must not be inside its store; choose another directory"
        )
