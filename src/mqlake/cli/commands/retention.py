"""Show what retention would remove from a store. Nothing is removed.

The plan lists the files of the commit log that a broker would remove now, or at the time `--at`:
expired files, which are older than `fileReservedTime` hours, if the hour is one of `deleteWhen` or
the disk is fuller than `diskMaxUsedSpaceRatio`; and files that are removed because the disk is too
full or the log too large. It also lists the queue and index files that would be removed with them,
says whether a broker would accept messages while the disk is this full, and names the consumer
groups that have not read the messages in these files.

Settings come from `config/broker.properties` of the store, in which `updateBrokerConfig` saves them
if the broker runs without `--config`. `--config` overrides these, and `--set` overrides both. All
other settings have RocketMQ's defaults.

JSON: `store`, `at` (the time that the plan is for), `isTime` (whether `at` is in an hour that
`deleteWhen` lists), `nextTime` (the next such time), `fileReservedTime`, `deleteWhen`,
`usedPercent` (of the disk), `mostUsedPercent` (above it, expired files are removed at any hour),
`cleanForciblyPercent` (above it, any files may be removed), `warningPercent` (above it, no messages
are accepted), `notWritable` (why no messages are accepted, null if they are), `minOffset` and
`maxOffset` (of the log), `newMinOffset` (of the log after the removal), `files`, `bytes` (the total
size of these files), `unread`, `warnings`.

Each of `files` has `file`, `bytes` and `reason`: "expired", "disk", "bytes", or "log" for a queue
or index file. Each of `unread` has `group`, `topic` and `messages`.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.options import UsageError
from mqlake.cli.output import draw, write_json
from mqlake.cli.progress import reported_reading
from mqlake.cli.text import YEAR_9999
from mqlake.storage.clock import SystemClock

if TYPE_CHECKING:
    from mqlake.storage.protocol import Directory
    from mqlake.store.settings import StoreSettings

EXAMPLES = (
    "mqlake retention /data/rocketmq/store --plan -c broker.conf",
    "mqlake retention STORE --plan --set fileReservedTime=48 --set 'deleteWhen=04;16'",
    "mqlake retention STORE --plan --set maxCommitLogBytes=53687091200 --json",
    "mqlake retention STORE --plan --disk-used 91",
)


def retention(
    store: shared.Store,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Required. It confirms that nothing is removed: the command only shows the plan.",
        ),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="The broker.conf with which the broker runs."
        ),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be repeated."),
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            min=0,
            max=YEAR_9999,
            help="Plan for this time, in milliseconds since 1970, instead of now.",
        ),
    ] = None,
    disk_used: Annotated[
        int | None,
        typer.Option(
            metavar="PERCENT",
            min=0,
            max=100,
            help="Plan as if this percentage of the disk were in use.",
        ),
    ] = None,
    json: shared.Json = False,
) -> int:
    """Show what retention would remove from a store."""
    if not plan:
        raise UsageError(
            "retention removes nothing, a broker does; add --plan to see what it would remove"
        )

    from mqlake.storage.local_owned import LocalOwnedDirectory
    from mqlake.storage.protocol import DiskUsage
    from mqlake.store.retention.report import plan_store

    directory = LocalOwnedDirectory(store)
    settings = _settings(directory, config, override or [])
    usage = None
    if disk_used is not None and store.is_dir():
        total = directory.usage().total
        usage = DiskUsage(total, total - total * disk_used // 100)
    now = SystemClock().milliseconds()
    with reported_reading(store):
        report = plan_store(directory, settings, now if at is None else at, usage)
    if json:
        write_json(report)
    else:
        from mqlake.cli.views.retention import view

        draw(view(report, settings.delete_file_batch_max))
    return 0


def _settings(directory: Directory, config: Path | None, overrides: list[str]) -> StoreSettings:
    from mqlake.store.config.properties_file import read_changed
    from mqlake.store.settings import StoreSettings, make_settings, read_properties

    with warnings.catch_warnings():
        # A broker.conf also names settings that do not concern the store.
        warnings.simplefilter("ignore")
        found = read_properties(config) if config else {}
        found = read_changed(directory, StoreSettings).besides(StoreSettings, found) | found
        make_settings(found)
    given = [text.partition("=") for text in overrides]
    if wrong := [name for name, sign, _ in given if not sign]:
        raise UsageError(f"--set needs NAME=VALUE, not {wrong[0]!r}")
    chosen: dict[str, object] = {name.strip(): value.strip() for name, _, value in given}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            make_settings(chosen)
        except UserWarning as unknown:
            raise UsageError(f"--set: {unknown}") from None
        warnings.simplefilter("ignore")
        return make_settings({**found, **chosen})
