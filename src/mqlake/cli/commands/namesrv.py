"""Tell RocketMQ clients where topics are: a name server, until SIGTERM or Ctrl-C.

Settings come from `--config`, a file as RocketMQ's mqnamesrv has it, then from the options; names
that mqlake does not know are warned of. `mqadmin updateNamesrvConfig` changes the file too. The KV
configuration, in which ordered topics are, is kept where mqnamesrv keeps it. Without `--bind`
brokers and clients of this machine only are served. Log lines go to stderr.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqlake.cli.options import Override, settings_given

EXAMPLES = (
    "mqlake namesrv",
    "mqlake namesrv --port 9877 --bind 0.0.0.0",
    "mqlake namesrv -c namesrv.conf --set orderMessageEnable=true",
)

_KV_CONFIG = "~/namesrv/kvConfig.json"


def namesrv(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="A file of settings."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="Port to listen on, 9876; listenPort."),
    ] = None,
    bind: Annotated[
        str | None,
        typer.Option(
            "--bind", metavar="ADDRESS", help="Address to listen on, 0.0.0.0 for all; bindAddress."
        ),
    ] = None,
    override: Override = None,
) -> int:
    """Tell RocketMQ clients where topics are."""
    from mqlake.namesrv.name_server import NameServer
    from mqlake.namesrv.settings import make_namesrv_settings
    from mqlake.programs.serve import serve
    from mqlake.store.settings import read_properties

    given = settings_given(override)
    found: dict[str, object] = {"kvConfigPath": _KV_CONFIG}
    if config:
        found |= {"configStorePath": str(config.absolute()), **read_properties(config)}
    options = {"listenPort": port, "bindAddress": bind}
    found |= {name: str(value) for name, value in options.items() if value is not None}
    found |= given
    serve(lambda: NameServer(make_namesrv_settings(found)))
    return 0
