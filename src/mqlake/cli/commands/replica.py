"""Keep a read-only copy of the store of a running master (RocketMQ's or mqlake's).

MASTER is the master's broker name, which the replica looks up at the name servers, or the
"host:port" at which the master serves clients. The copy is a store: every command and Spark can
read it while it grows. A replica does not register with name servers, and producers never wait for
it unless `--count` is given. If the program is stopped or killed, the next start resumes the copy.
Without `--once`, the program runs until SIGTERM or Ctrl-C.

If the copy and the master's log differ, or the master has removed what the copy needs next, the
program ends with an error and the copy stays as it is. After other failures, the program retries
with pauses that grow from 0.5 to 30 seconds. With `--once`, it ends with an error if the master
cannot be reached.

JSON, one object per line every `--every` seconds: `time` (ms), `master`, `address`, `store`,
`minOffset` and `maxOffset` (physical offsets of the copy), `masterMaxOffset`, `lagBytes`, `lagMs`
(median time from a message's store time at the master to its arrival here, for the messages since
the last line), `bytesPerSecond`, `received` (bytes since the start), `problem` (why nothing is
copied now). Unknown values are `null`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from mqlake.cli import options as shared
from mqlake.cli.access import chosen
from mqlake.cli.option_groups import grouped
from mqlake.cli.output import write_json, write_line
from mqlake.cli.progress import logged_loading, reported_servers
from mqlake.cli.streams import DEFAULT_NAMES, Names, run_until_told

if TYPE_CHECKING:
    import asyncio

    from mqlake.replica.options import ReplicaOptions
    from mqlake.replica.status import ReplicaStatus

EXAMPLES = (
    "mqlake replica broker-a --store /data/copy/broker-a -n 10.0.0.1:9876",
    "mqlake replica broker-a --store /data/copy/broker-a --keep-hours 72",
    "mqlake replica 10.0.0.7:10911 --store ./copy --once --json",
)


class CopyOptions(NamedTuple):
    """Where the master serves slaves, and how long the copy keeps its log."""

    ha: Annotated[
        str | None,
        typer.Option(
            "--ha",
            metavar="HOST:PORT",
            help="Address at which the master serves slaves; default: from the master's settings.",
        ),
    ] = None
    ha_tls: shared.HaTls = True
    keep_hours: shared.KeepHours = None
    keep_bytes: shared.KeepBytes = None


@grouped
def replica(
    master: Annotated[
        str,
        typer.Argument(
            metavar="MASTER", help="Broker name, or host:port of the master.", show_default=False
        ),
    ],
    store: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Directory of the copy, created if missing."),
    ],
    *,
    names: Names = DEFAULT_NAMES,
    copied: CopyOptions,
    count: Annotated[
        bool,
        typer.Option(
            "--count",
            help="Acknowledge copied messages to the master, as a slave does; its producers may "
            "then wait for this copy.",
        ),
    ] = False,
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Stop when the copy has everything that the master had at the start."
        ),
    ] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Time between two lines of output.")
    ] = 10.0,
    metrics: shared.MetricsAddress = None,
    json: Annotated[
        bool, typer.Option("--json", help="Write JSON objects to stdout, one per line.")
    ] = False,
) -> int:
    """Keep a read-only copy of a running master's store."""
    import logging

    from mqlake.replica.options import ReplicaOptions

    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s"
    )
    access = chosen()
    options = ReplicaOptions(
        master=master,
        store=store.absolute(),
        name_servers=names,
        tls=access.tls,
        credentials=access.credentials,
        has_ha_tls=copied.ha_tls,
        ha_address=copied.ha,
        keep_hours=copied.keep_hours,
        keep_bytes=copied.keep_bytes,
        is_counted=count,
        is_patient=not once,
    )

    pages = shared.host_and_port(metrics) if metrics is not None else None

    async def work(told: asyncio.Event) -> None:
        await _copy(options, told, every, pages, once=once, json=json)

    with reported_servers(True, logging.getLogger(__name__).info):
        run_until_told(work)
    return 0


async def _copy(
    options: ReplicaOptions,
    told: asyncio.Event,
    every: float,
    pages: tuple[str, int] | None,
    *,
    once: bool,
    json: bool,
) -> None:
    import asyncio
    from contextlib import AsyncExitStack

    with logged_loading("replica"):
        from mqlake.metrics.exporting.options import ServedPages
        from mqlake.metrics.publishing import publish
        from mqlake.replica.metrics import ObservedReplica
        from mqlake.replica.replica import Replica

    async with AsyncExitStack() as undo:
        copy = await undo.enter_async_context(Replica(options))
        if pages is not None:
            await publish(ServedPages(*pages), ObservedReplica(copy), undo)
        ends = [asyncio.ensure_future(told.wait())]
        ends += [asyncio.ensure_future(copy.caught_up.wait())] if once else []
        while not any(end.done() for end in ends):
            await asyncio.wait([*ends, copy.failed], timeout=every, return_when="FIRST_COMPLETED")
            _say(copy.status(), json=json)
            if copy.failed.done():
                raise copy.failed.result()
        for end in ends:
            end.cancel()


def _say(status: ReplicaStatus, *, json: bool) -> None:
    if json:
        write_json(status)
        return
    lag = "not known" if status.lag_bytes is None else f"{status.lag_bytes:,} bytes"
    age = "" if status.lag_ms is None else f", {status.lag_ms:,} ms"
    state = f"; {status.problem}" if status.problem else ""
    write_line(
        f"{status.master or 'master'}: [{status.min_offset}, {status.max_offset}), lag {lag}{age},"
        f" {status.bytes_per_second / 1e6:,.1f} MB/s{state}"
    )
