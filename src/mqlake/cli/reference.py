"""Write the reference page of the command line: `python -m mqlake.cli.reference > docs/cli.md`.

The page is made of the program's own help and the docstrings of the commands' modules.
"""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout

import typer

from mqlake.cli.app import COMMANDS, KAFKA_COMMANDS, app

WIDTH = 96

HEAD = """\
# The command line

*For everyone who runs `mqlake` in a shell or from a program.
Made by `python -m mqlake.cli.reference > docs/cli.md`; do not edit.*

`broker` and `namesrv` serve until they are stopped; `admin` talks to them, and `produce`, `consume`
and `tail` to any RocketMQ cluster. Every other command but those of `mqlake kafka` takes a store
directory, the one that holds `commitlog/`. Reading never changes a byte of it; only `rebuild`
without `--out` writes into it, and only the files that RocketMQ derives from the commit log.

| exit code | meaning |
| --- | --- |
| 0 | fine |
| 1 | damage was found (`verify`), or nothing matched (`query`, `lookup`) |
| 2 | bad usage, or input that cannot be read: one line on stderr says why |
| 130 | interrupted |
| 141 | whoever read stdout went away |

With `--json`, stdout has one JSON object on one line and nothing else; one for each message with
`consume` and `tail`. Times are milliseconds since
1970 in options and in JSON; text shows local time as well. Progress and errors go to stderr.
`MQLAKE_DEBUG=1` shows the traceback of an error.
"""

ADMIN_HEAD = """\
The everyday commands of RocketMQ's `mqadmin`, under their names and with their options, against any
name server and broker: see [admin.md](admin.md). Each has `--json`, and says more with `--help`.
"""

KAFKA_HEAD = """\
The same for Apache Kafka: every command takes a segment's `.log` file, the directory of a
partition, or a whole log directory. Only `rebuild-index` and `recover` change anything.
Needs `pip install 'mqlake[kafka]'`.
"""


def page() -> str:
    """Return the page in Markdown."""
    parts = [HEAD, _help([])]
    for name, module in COMMANDS.items():
        parts += [f"## mqlake {name}\n", f"{module.__doc__}", _help([name])]
    parts += ["## mqlake admin\n", ADMIN_HEAD, _help(["admin"])]
    parts += ["## mqlake kafka\n", KAFKA_HEAD, _help(["kafka"])]
    for name, module in KAFKA_COMMANDS.items():
        parts += [f"### mqlake kafka {name}\n", f"{module.__doc__}", _help(["kafka", name])]
    return "\n".join(parts)


def _help(command: list[str]) -> str:
    shown = io.StringIO()
    with redirect_stdout(shown):
        typer.main.get_command(app).main(
            [*command, "--help"],
            prog_name="mqlake",
            standalone_mode=False,
            terminal_width=WIDTH,
        )
    return f"```text\n{shown.getvalue()}```\n"


if __name__ == "__main__":
    sys.stdout.write(page())
