"""Run a name server until SIGTERM or Ctrl-C. It gives RocketMQ clients the routes of topics.

Settings come from `--config`, a configuration file of RocketMQ's mqnamesrv; the options override
them. Unknown settings cause a warning. `mqadmin updateNamesrvConfig` changes the settings of the
running name server, and saves them in the file of `--config`, if given. The KV configuration, which
contains the ordered topics, is in the file that `kvConfigPath` names, by default
`~/namesrv/kvConfig.json`, as in mqnamesrv. Without `--bind` or `bindAddress`, only brokers and
clients on this machine can connect. Log lines go to stderr.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqlake.cli.options import LogForm, Override, settings_given

EXAMPLES = (
    "mqlake namesrv",
    "mqlake namesrv --port 9877 --bind 0.0.0.0",
    "mqlake namesrv -c namesrv.conf --set orderMessageEnable=true",
)

_KV_CONFIG = "~/namesrv/kvConfig.json"


def namesrv(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="A configuration file of mqnamesrv."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=1, max=65535, help="Port to listen on (listenPort); default: 9876."
        ),
    ] = None,
    bind: Annotated[
        str | None,
        typer.Option(
            "--bind",
            metavar="ADDRESS",
            help="Address to listen on (bindAddress); 0.0.0.0: all addresses.",
        ),
    ] = None,
    override: Override = None,
    log_format: LogForm = "text",
) -> int:
    """Run a name server: topic routes for RocketMQ clients."""
    from mqlake.namesrv.settings import make_namesrv_settings
    from mqlake.programs.logs import LogFormat
    from mqlake.programs.name_server import NameServerProgram
    from mqlake.programs.serve import serve
    from mqlake.store.settings import read_properties

    given = settings_given(override)
    found: dict[str, object] = {"kvConfigPath": _KV_CONFIG}
    if config:
        found |= {"configStorePath": str(config.absolute()), **read_properties(config)}
    options = {"listenPort": port, "bindAddress": bind}
    found |= {name: str(value) for name, value in options.items() if value is not None}
    found |= given
    serve(lambda: NameServerProgram(make_namesrv_settings(found)), LogFormat(log_format))
    return 0
