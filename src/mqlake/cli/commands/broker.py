"""Run a broker for RocketMQ clients on one store directory, until SIGTERM or Ctrl-C.

Settings come from `--config`, a RocketMQ `broker.conf`; the options override them. Unknown
settings cause a warning. `updateBrokerConfig` writes changed settings to the file of `--config` or,
without `--config`, to `config/broker.properties` of the store. Each start reads
`config/broker.properties` first; the file of `--config` and the options override it. A name server
runs in the same process, unless `--namesrv`, the file of `--config` or the environment variable
NAMESRV_ADDR gives the address of another name server. By default, only clients on this machine can
connect. If `brokerIP1` is not a loopback address, the broker listens on all addresses, unless
`bindAddress` names one. Log lines go to stderr.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqlake.cli.options import LogForm, Override, UsageError, settings_given
from mqlake.cli.progress import logged_loading

if TYPE_CHECKING:
    from mqlake.programs.broker import BrokerProgram

EXAMPLES = (
    "mqlake broker --store /data/rocketmq/store",
    "mqlake broker -c broker.conf --namesrv 10.0.0.1:9876",
    "mqlake broker --store ./store --grpc-port 8081",
    "mqlake broker --store ./store --set flushDiskType=SYNC_FLUSH --set brokerName=broker-a",
)

_NAMESRV_PORT = 9876


def broker(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="A RocketMQ broker.conf."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            metavar="DIR",
            help="Store directory, created if missing (storePathRootDir).",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=1,
            max=65535,
            help="Port to listen on (listenPort). The broker also listens on the fast port, which"
            " is 2 less.",
        ),
    ] = None,
    namesrv: Annotated[
        str | None,
        typer.Option(
            "--namesrv",
            metavar="ADDRESSES",
            help="Name servers, separated by ';' (namesrvAddr).",
        ),
    ] = None,
    grpc_port: Annotated[
        int | None,
        typer.Option(
            "--grpc-port",
            min=1,
            max=65535,
            help="Also listen on this port for RocketMQ 5's own clients, which speak gRPC; usually"
            " 8081 (grpcServerPort). Needs `pip install 'mqlake[grpc]'`.",
        ),
    ] = None,
    console_port: Annotated[
        int | None,
        typer.Option(
            "--console-port",
            min=1,
            max=65535,
            help="Also run a web console on this port of 127.0.0.1, usually 8280, in another"
            " process (consolePort). Needs `pip install 'mqlake[console]'`.",
        ),
    ] = None,
    namesrv_port: Annotated[
        int,
        typer.Option(
            "--namesrv-port",
            min=1,
            max=65535,
            help="Port of the name server that runs in this process if no name servers are given.",
        ),
    ] = _NAMESRV_PORT,
    override: Override = None,
    log_format: LogForm = "text",
) -> int:
    """Run a broker for RocketMQ clients on a store directory."""
    from mqlake.programs.logs import LogFormat
    from mqlake.programs.serve import serve

    if store is not None and store.exists() and not store.is_dir():
        raise UsageError(f"--store {store}: this is a file; a store is a directory")
    given = settings_given(override)
    options = {
        "storePathRootDir": store,
        "listenPort": port,
        "grpcServerPort": grpc_port,
        "consolePort": console_port,
        "namesrvAddr": namesrv,
    }

    def make() -> BrokerProgram:
        with logged_loading("broker"):
            from mqlake.programs.broker import BrokerProgram, starting_settings
            from mqlake.store.settings import read_properties

        found: dict[str, object] = {"namesrvAddr": os.environ.get("NAMESRV_ADDR", "")}
        found |= read_properties(config) if config else {}
        found |= {name: str(value) for name, value in options.items() if value is not None}
        found |= given
        return BrokerProgram(starting_settings(found), namesrv_port, config)

    serve(make, LogFormat(log_format))
    return 0
