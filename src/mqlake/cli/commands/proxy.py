"""Run a proxy until SIGTERM or Ctrl-C: RocketMQ 5's gRPC clients before the brokers of a cluster.

It keeps nothing, so any number of proxies may run side by side. The brokers may be mqlake's or
RocketMQ's. A broker with `--grpc-port` serves these clients itself and needs no proxy. `--set`
takes the settings of docs/proxy-settings.md, which have the names of RocketMQ's `rmq-proxy.json`.
Without `--bind`, only clients on this machine can connect. The options of `mqlake` about TLS, and
its environment variables for the user, apply to the connections to name servers and brokers. Log
lines go to stderr.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mqlake.cli.access import chosen
from mqlake.cli.options import (
    LogForm,
    Override,
    ServerKey,
    UsageError,
    host_and_port,
    settings_given,
)
from mqlake.cli.progress import logged_loading
from mqlake.cli.streams import DEFAULT_NAMES, Names

if TYPE_CHECKING:
    from mqlake.programs.proxy import ProxyProgram

EXAMPLES = (
    "mqlake proxy -n '127.0.0.1:9876'",
    "mqlake proxy -n 'names-1:9876;names-2:9876' --bind 0.0.0.0 --grpc-port 8081",
    "mqlake proxy --set maxPollsPerClient=100 --metrics 127.0.0.1:5560",
)


def proxy(
    names: Names = DEFAULT_NAMES,
    port: Annotated[
        int,
        typer.Option("--grpc-port", min=1, max=65535, help="Port to listen on."),
    ] = 8081,
    bind: Annotated[
        str,
        typer.Option(
            "--bind", metavar="ADDRESS", help="Address to listen on; 0.0.0.0: all addresses."
        ),
    ] = "127.0.0.1",
    server_cert: Annotated[
        str,
        typer.Option(
            "--server-cert",
            metavar="FILE",
            help="Certificate for clients that use TLS (PEM); default: a self-signed one.",
            show_default=False,
        ),
    ] = "",
    server_key: ServerKey = "",
    require_tls: Annotated[
        bool, typer.Option("--require-tls", help="Refuse clients that do not use TLS.")
    ] = False,
    balancers: Annotated[
        str,
        typer.Option(
            "--proxy-protocol",
            metavar="ADDRESSES",
            help="Balancers whose connections may begin with a header of the PROXY protocol, which"
            " names the client; addresses and networks, separated by `;`.",
            show_default=False,
        ),
    ] = "",
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="HOST:PORT", help="Serve metrics there."),
    ] = None,
    override: Override = None,
    log_format: LogForm = "text",
) -> int:
    """Run a proxy: RocketMQ 5's gRPC clients before any brokers."""
    from mqlake.programs.logs import LogFormat
    from mqlake.programs.serve import serve
    from mqlake.proxy.settings import ProxySettings
    from mqlake.remoting.tls.options import ServerTls, TlsMode
    from mqlake.store.bounds import networks
    from mqlake.store.settings import settings_of

    try:
        networks(balancers)
    except ValueError as error:
        raise UsageError(f"--proxy-protocol: {error}") from None
    settings = settings_of(ProxySettings, settings_given(override))
    mode = TlsMode.ENFORCING if require_tls else TlsMode.PERMISSIVE
    pages = None if metrics is None else host_and_port(metrics)

    def make() -> ProxyProgram:
        with logged_loading("proxy"):
            from mqlake.proxy.local import check_installed

            check_installed()
            from mqlake.programs.proxy import ProxyOptions, ProxyProgram
        options = ProxyOptions(
            names,
            port=port,
            bind=bind,
            access=chosen(),
            tls=ServerTls(cert=server_cert, key=server_key, mode=mode),
            balancers=balancers,
            metrics=pages,
        )
        return ProxyProgram(options, settings)

    serve(make, LogFormat(log_format))
    return 0
