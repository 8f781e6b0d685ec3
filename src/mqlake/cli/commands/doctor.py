"""Check what this machine lacks for mqlake, and say how to install or fix it.

The command checks Python, the packages of each extra, the compiled kernels, Java, the default
ports, the disk of a store (its room, and how long a sync takes), and the limit of open files. With
`--spark`, it starts Spark on this machine, and runs a job. It changes nothing.

A note is about something that works less well, or about a part that you may not need. A problem is
about something that fails. The exit code is 1 if there is a problem.

JSON: `problems` and `notes` (how many there are), `findings`. Each of these has `name`, `state`
("ok", "note" or "problem"), `found` and `mend` (a command, or what else to do; empty if there is
nothing to do).
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.output import draw, write_json
from mqlake.spark.waiting import progress_lines

EXAMPLES = (
    "mqlake doctor",
    "mqlake doctor --spark",
    "mqlake doctor --store /data/rocketmq/store --namesrv 'host1:9876;host2:9876' --json",
)


def doctor(
    store: Annotated[
        Path,
        typer.Option("--store", metavar="DIR", help="Directory of a store: its disk is checked."),
    ] = Path(),
    namesrv: Annotated[
        str,
        typer.Option(
            "--namesrv", "-n", metavar="HOST:PORT", help="Name servers to reach, separated by ';'."
        ),
    ] = "",
    spark: Annotated[
        bool, typer.Option("--spark", help="Also start an embedded Spark, and run a job on it.")
    ] = False,
    json: shared.Json = False,
) -> int:
    """Check what this machine lacks for mqlake, and say how to install or fix it."""
    is_watched = spark or sys.stderr.isatty()
    what = "checking this machine"
    what += f" and the name servers {namesrv}" if namesrv else ""
    what += " and starting Spark" if spark else ""
    with progress_lines(what) if is_watched else nullcontext():
        from mqlake.doctor.examine import examine
        from mqlake.doctor.finding import Severity

        addresses = [address for address in namesrv.split(";") if address]
        findings = list(examine(store, addresses, starts_spark=spark))
    problems, notes = (
        sum(each.state is state for each in findings) for state in (Severity.PROBLEM, Severity.NOTE)
    )
    if json:
        write_json({"problems": problems, "notes": notes, "findings": findings})
    else:
        from mqlake.cli.views.doctor import view

        draw(view(findings, problems))
    return 1 if problems else 0
