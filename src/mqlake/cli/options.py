"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mqlake.errors import MqlakeError

LONGEST_TIME = (1 << 63) - 1
_SHOWN = 200
"""Characters of a wrong address in an error."""


class UsageError(MqlakeError):
    """Options that cannot be combined."""


Store = Annotated[
    Path,
    typer.Argument(
        metavar="STORE",
        help="RocketMQ store directory (the one that contains commitlog/).",
        show_default=False,
    ),
]
Place = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="RocketMQ store directory (the one that contains commitlog/), its URL, or an archive.",
        show_default=False,
    ),
]
Archive = Annotated[
    str | None,
    typer.Option(
        "--archive",
        metavar="PLACE",
        help="Archive of the store; STORE and the archive are read as one log.",
    ),
]
ObjectStoreSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Setting of the object store, such as fs.s3a.endpoint=URL; may be repeated.",
    ),
]
HaTls = Annotated[
    bool,
    typer.Option(
        "--ha-tls/--no-ha-tls",
        help="With TLS, copy the log over TLS, too. RocketMQ's masters cannot do that:"
        " --no-ha-tls copies their logs in clear text.",
    ),
]
ServerKey = Annotated[
    str,
    typer.Option(
        "--server-key",
        metavar="FILE",
        help="Private key of that certificate (PEM).",
        show_default=False,
    ),
]
KeepHours = Annotated[
    int | None,
    typer.Option(
        "--keep-hours",
        metavar="HOURS",
        min=0,
        max=1_000_000,
        help="Remove segments of the copy this many hours after they were closed; default:"
        " keep all.",
    ),
]
KeepBytes = Annotated[
    int | None,
    typer.Option(
        "--keep-bytes",
        metavar="BYTES",
        min=1,
        help="Remove the copy's oldest segments if its log is larger than this; default: keep all.",
    ),
]
MetricsAddress = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="HOST:PORT",
        help="Serve /metrics for Prometheus, /livez and /readyz at this address.",
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Write one JSON object to stdout and nothing else."),
]
EngineName = Literal["spark", "local"]
Engine = Annotated[
    EngineName,
    typer.Option("--engine", help="Run on Spark or on the threads of this process."),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Spark master, such as spark://host:7077; default: Spark on this machine.",
    ),
]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show progress on stderr; default: only if stderr is a terminal.",
        show_default=False,
    ),
]
Dialect = Annotated[
    Literal["5.5", "5.3", "4.9"] | None,
    typer.Option(
        "--dialect",
        help="RocketMQ version whose index rules apply; default: detected from the store.",
    ),
]
Begin = Annotated[
    int | None,
    typer.Option(
        "--begin",
        metavar="MS",
        min=0,
        max=LONGEST_TIME,
        help="Earliest store time, in milliseconds since 1970.",
    ),
]
End = Annotated[
    int | None,
    typer.Option(
        "--end",
        metavar="MS",
        min=0,
        max=LONGEST_TIME,
        help="Latest store time, in milliseconds since 1970, inclusive.",
    ),
]

Override = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be repeated."),
]


LogForm = Annotated[
    Literal["text", "json"],
    typer.Option("--log-format", help="json: one object for each event, on stderr."),
]


def host_and_port(address: str) -> tuple[str, int]:
    """Return the host and the port of `--metrics`.

    Raises:
        UsageError: it is not HOST:PORT.
    """
    from mqlake.remoting.client import split_address  # Imported late: few commands need it.
    from mqlake.remoting.errors import ConnectionFailedError

    try:
        return split_address(address)
    except ConnectionFailedError:
        raise UsageError(f"--metrics needs HOST:PORT, not {address[:_SHOWN]!r}") from None


def settings_given(override: list[str] | None) -> dict[str, str]:
    """Return the settings of `--set`, by name.

    Raises:
        UsageError: an option is not NAME=VALUE.
    """
    given = [text.partition("=") for text in override or []]
    if wrong := [name for name, sign, _ in given if not sign]:
        raise UsageError(f"--set needs NAME=VALUE, not {wrong[0]!r}")
    return {name.strip(): value.strip() for name, _, value in given}
