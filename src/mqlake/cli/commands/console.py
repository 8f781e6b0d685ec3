"""Run a web console for a cluster, until SIGTERM or Ctrl-C.

The brokers may be mqlake's or RocketMQ's. Open the address that the first log line names in a
browser. With `--store`, the console also shows store directories of this machine. The options of
`mqlake` about TLS, and its environment variables for the user, apply to the connections to name
servers and brokers. Other machines can connect only with `--host` and `--login`: then everybody
logs in as a user of the cluster. Log lines, and a line for each change, go to stderr.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from mqlake.cli.access import chosen
from mqlake.cli.option_groups import grouped
from mqlake.cli.options import LogForm, ServerKey
from mqlake.cli.progress import logged_loading
from mqlake.cli.streams import DEFAULT_NAMES, Names

if TYPE_CHECKING:
    from mqlake.console.server import ConsoleServer

EXAMPLES = (
    "mqlake console -n '127.0.0.1:9876'",
    "mqlake console -n '127.0.0.1:9876' --store ./store --read-only",
    "mqlake console --host 0.0.0.0 --login --server-cert cert.pem --server-key key.pem",
)


class DataOptions(NamedTuple):
    """What a console shows besides the cluster."""

    store: Annotated[
        list[Path] | None,
        typer.Option(
            "--store", metavar="DIR", help="A store directory to show, too; may be repeated."
        ),
    ] = None
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="PATH",
            help="A lake table of `mqlake follow` to query, too; may be repeated.",
        ),
    ] = None
    archive: Annotated[
        list[str] | None,
        typer.Option("--archive", metavar="URL", help="An archive of a store; may be repeated."),
    ] = None
    schemas: Annotated[
        Path | None,
        typer.Option(
            "--schemas",
            metavar="DIR",
            help="A directory with Avro (.avsc) or Protobuf (.desc, .pb) schemas of bodies.",
        ),
    ] = None
    broker_timeout: Annotated[
        float,
        typer.Option(
            "--broker-timeout",
            min=0.1,
            metavar="SECONDS",
            help="How long a page waits for a broker.",
        ),
    ] = 3.0


class VisitorOptions(NamedTuple):
    """Who may use a console, and where."""

    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = 8280
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1"
    read_only: Annotated[bool, typer.Option("--read-only", help="Let nobody change anything.")] = (
        False
    )
    login: Annotated[
        bool, typer.Option("--login", help="Require a login as a user of the cluster.")
    ] = False
    viewer: Annotated[
        list[str] | None,
        typer.Option(
            "--viewer",
            metavar="USER",
            help="A user who may look but change nothing; may be repeated.",
        ),
    ] = None
    server_cert: Annotated[
        str,
        typer.Option(
            "--server-cert",
            metavar="FILE",
            help="Certificate for HTTPS (PEM).",
            show_default=False,
        ),
    ] = ""
    server_key: ServerKey = ""


@grouped
def console(
    data: DataOptions,
    visitors: VisitorOptions,
    names: Names = DEFAULT_NAMES,
    log_format: LogForm = "text",
) -> int:
    """Run a web console: see and change a cluster in a browser."""
    from mqlake.console.options import ConsoleOptions
    from mqlake.programs.logs import LogFormat
    from mqlake.programs.serve import serve

    options = ConsoleOptions(
        name_servers=names,
        stores=tuple(each.absolute() for each in data.store or ()),
        tables=tuple(data.table or ()),
        archives=tuple(data.archive or ()),
        schemas=data.schemas,
        broker_seconds=data.broker_timeout,
        host=visitors.host,
        port=visitors.port,
        read_only=visitors.read_only,
        login=visitors.login,
        viewers=frozenset(visitors.viewer or ()),
        access=chosen(),
        certificate=visitors.server_cert,
        key=visitors.server_key,
    )
    options.check()

    def make() -> ConsoleServer:
        with logged_loading("console"):
            from mqlake.console.server import ConsoleServer
        return ConsoleServer(options)

    serve(make, LogFormat(log_format))
    return 0
