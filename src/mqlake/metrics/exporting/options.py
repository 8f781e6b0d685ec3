"""How a program publishes its metrics, under RocketMQ's setting names.

Upstream: `BrokerConfig.metricsExporterType` and the settings after it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from mqlake.errors import MqlakeError

_MILLISECONDS = 1000


class MetricsSettings(Protocol):
    """The settings of a server that are about metrics."""

    @property
    def metrics_exporter_type(self) -> str: ...
    @property
    def metrics_prom_exporter_host(self) -> str: ...
    @property
    def metrics_prom_exporter_port(self) -> int: ...
    @property
    def metrics_grpc_exporter_target(self) -> str: ...
    @property
    def metrics_grpc_exporter_header(self) -> str: ...
    @property
    def metric_grpc_exporter_time_out_in_mills(self) -> int: ...
    @property
    def metric_grpc_exporter_interval_in_mills(self) -> int: ...
    @property
    def metric_logging_exporter_interval_in_mills(self) -> int: ...
    @property
    def metrics_in_delta(self) -> bool: ...
    @property
    def metrics_export_batch_max_data_points(self) -> int: ...


class ServedPages(NamedTuple):
    """Pages for Prometheus and orchestrators.

    Attributes:
        host, port: where they are served; port 0 is any free one.
    """

    host: str
    port: int


class OtlpExport(NamedTuple):
    """An export to a collector that speaks OTLP over gRPC.

    Attributes:
        target: its URL, "https://host:port", or "http://host:port" without TLS.
        headers: of each request.
        timeout: seconds within which an export must be complete.
        interval: seconds between two exports.
        is_delta: whether totals are what was added since the last export that arrived.
        most: maximum data points of a request.
    """

    target: str
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 3.0
    interval: float = 60.0
    is_delta: bool = False
    most: int = 1000


class LogExport(NamedTuple):
    """An export to the log.

    Attributes:
        interval: seconds between two exports.
        is_delta: whether totals are what was added since the last export.
    """

    interval: float = 10.0
    is_delta: bool = False


Publishing = ServedPages | OtlpExport | LogExport


def publishing(settings: MetricsSettings, host: str) -> Publishing | None:
    """Return how a server publishes its metrics; None if it does not.

    Args:
        host: where pages are served if no setting says so.

    Raises:
        MqlakeError: settings contradict each other.
    """
    is_delta = settings.metrics_in_delta
    match settings.metrics_exporter_type:
        case "PROM":
            return ServedPages(
                settings.metrics_prom_exporter_host or host, settings.metrics_prom_exporter_port
            )
        case "OTLP_GRPC":
            target = settings.metrics_grpc_exporter_target
            if not target:
                raise MqlakeError(
                    "setting metricsExporterType is OTLP_GRPC: set metricsGrpcExporterTarget to the"
                    " collector's address, such as http://127.0.0.1:4317"
                )
            return OtlpExport(
                target if "://" in target else f"https://{target}",
                headers(settings.metrics_grpc_exporter_header),
                settings.metric_grpc_exporter_time_out_in_mills / _MILLISECONDS,
                settings.metric_grpc_exporter_interval_in_mills / _MILLISECONDS,
                is_delta=is_delta,
                most=settings.metrics_export_batch_max_data_points,
            )
        case "LOG":
            seconds = settings.metric_logging_exporter_interval_in_mills / _MILLISECONDS
            return LogExport(seconds, is_delta=is_delta)
        case _:
            return None


def headers(text: str) -> tuple[tuple[str, str], ...]:
    """Return the headers in a text such as "authorization:abc,tenant:7".

    Raises:
        ValueError: a part has no colon, or no name.
    """
    found: list[tuple[str, str]] = []
    for part in text.split(","):
        if part.strip():
            name, colon, value = part.partition(":")
            if not colon or not name.strip() or not (name + value).isprintable():
                raise ValueError("a part that is not name:value")
            found.append((name.strip().lower(), value.strip()))
    return tuple(found)
