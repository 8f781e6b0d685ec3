"""The program `mqlake`: its commands, and its exit codes.

Exit codes: 0 success; 1 damage was found, as by verify, or nothing matched, as in query; 2 wrong
usage, or unreadable input, with one line on stderr that begins with `mqlake: `; 130 interrupted;
141 the reader of stdout closed it. MQLAKE_DEBUG=1 shows the traceback of an error instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Annotated

import typer

from mqlake.cli import access
from mqlake.cli.commands import admin as admin_commands
from mqlake.cli.commands import (
    archive,
    broker,
    console,
    consume,
    convert,
    doctor,
    export,
    follow,
    inspect,
    namesrv,
    produce,
    proxy,
    query,
    rebuild,
    replica,
    retention,
    tail,
    verify,
)
from mqlake.cli.commands import kafka as kafka_commands
from mqlake.cli.commands.admin.commands import COMMANDS as ADMIN_COMMANDS
from mqlake.cli.commands.kafka import dump, lookup, rebuild_index, recover
from mqlake.cli.commands.kafka import inspect as inspect_kafka
from mqlake.cli.commands.kafka import verify as verify_kafka
from mqlake.cli.options import UsageError
from mqlake.cli.usage.advice import advice
from mqlake.errors import MqlakeError
from mqlake.exports import missing_extra

FAILED = 2
INTERRUPTED = 128 + 2


def _version(wanted: bool) -> None:
    if wanted:
        from mqlake import __version__
        from mqlake.cli.output import write_line

        write_line(f"mqlake {__version__}")
        raise typer.Exit


def _program(
    _wants_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=_version
        ),
    ] = False,
    tls: access.Tls = False,
    ca: access.Ca = "",
    cert: access.Cert = "",
    key: access.Key = "",
    verify: access.Verify = None,
) -> None:
    """Run RocketMQ brokers and clients; inspect, verify, query, rebuild and export their stores.

    Commands that connect to brokers sign their requests in the name of the user in the environment
    variables MQLAKE_ACCESS_KEY and MQLAKE_SECRET_KEY, if these are set. If only the user is set,
    they ask for the password at a terminal.
    """
    access.choose(tls=tls, ca=ca, cert=cert, key=key, verify=verify)


COMMANDS: dict[str, ModuleType] = {
    "broker": broker,
    "namesrv": namesrv,
    "proxy": proxy,
    "console": console,
    "produce": produce,
    "consume": consume,
    "tail": tail,
    "inspect": inspect,
    "verify": verify,
    "rebuild": rebuild,
    "query": query,
    "export": export,
    "convert": convert,
    "follow": follow,
    "replica": replica,
    "retention": retention,
    "archive": archive,
    "doctor": doctor,
}

KAFKA_COMMANDS: dict[str, ModuleType] = {
    "inspect": inspect_kafka,
    "verify": verify_kafka,
    "dump": dump,
    "lookup": lookup,
    "rebuild-index": rebuild_index,
    "recover": recover,
}


def _examples(lines: Sequence[str]) -> str:
    # \b: the help formatter keeps the lines of this paragraph as they are.
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


# Help is plain text: importing rich costs more time than printing all of it.
app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, callback=_program)
kafka = typer.Typer(rich_markup_mode=None, help=kafka_commands.SUMMARY)
for _program_or_group, _commands in ((app, COMMANDS), (kafka, KAFKA_COMMANDS)):
    for _name, _module in _commands.items():
        _function = getattr(_module, _name.replace("-", "_"))
        _program_or_group.command(_name, epilog=_examples(_module.EXAMPLES))(_function)
app.add_typer(kafka, name="kafka")
admin = typer.Typer(rich_markup_mode=None, help=admin_commands.SUMMARY)
for _name, _function in ADMIN_COMMANDS.items():
    admin.command(_name)(_function)
app.add_typer(admin, name="admin")


@cache
def _parser():  # the type is one of Click's, which Typer has a copy of
    """Build the parser of all commands, which takes longer than what small commands do."""
    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return its exit code. A failure is reported on stderr, in one line."""
    try:
        code = _parser().main(list(arguments), prog_name="mqlake", standalone_mode=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("MQLAKE_DEBUG") == "1":
            raise
        reason = " ".join(_reason(error, arguments).split())
        sys.stderr.write(f"mqlake: {reason}\n")
        return FAILED
    return code or 0


def _reason(error: Exception, arguments: Sequence[str]) -> str:
    match error:
        case typer.TyperException():
            return f"{advice(error)} (see {_help_for(arguments)})"
        case UsageError():
            return f"{error} (see {_help_for(arguments)})"
        case MqlakeError():
            return f"{error}{access.hint(str(error))}"
        case OSError(strerror=str() as problem, filename=str() as name):
            return f"{name}: {problem}"
        case ModuleNotFoundError() if missing := missing_extra(error):
            return missing
        case _:
            return f"unexpected {type(error).__name__}: {error} (MQLAKE_DEBUG=1 shows where)"


def _help_for(arguments: Sequence[str]) -> str:
    first, *others = arguments or [""]
    groups = {"kafka": KAFKA_COMMANDS, "admin": ADMIN_COMMANDS}
    if first in groups:
        name = next((argument for argument in others if argument in groups[first]), None)
        return f"mqlake {first} {name} --help" if name else f"mqlake {first} --help"
    name = next((argument for argument in arguments if argument in COMMANDS), None)
    return f"mqlake {name} --help" if name else "mqlake --help"


def main() -> None:
    """Run the program on the arguments of this process."""
    sys.exit(run(sys.argv[1:]))
