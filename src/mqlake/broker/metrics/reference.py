"""Write the page of all metrics: `python -m mqlake.broker.metrics.reference > docs/metrics.md`."""

from __future__ import annotations

import sys
from types import ModuleType

from mqlake.broker.metrics import (
    connections,
    delivery,
    lag,
    pages,
    pops,
    replication,
    storage,
    traffic,
)
from mqlake.metrics.metric import Metric

HEAD = """\
# Metrics and health

*For operators: what a broker tells Prometheus and an orchestrator, and under which names. Generated
by `python -m mqlake.broker.metrics.reference > docs/metrics.md`; do not edit.*

```
pip install 'mqlake[metrics]'
mqlake broker --store ./store --set metricsExporterType=PROM
curl http://127.0.0.1:5557/metrics
```

`metricsExporterType=PROM` lets `mqlake broker` serve three pages over HTTP, on
`metricsPromExporterHost` and `metricsPromExporterPort` ([broker-settings.md](broker-settings.md)):

| page | answer |
| --- | --- |
| `/metrics` | all samples, in Prometheus's text format |
| `/livez` | 200 while the event loop runs |
| `/readyz` | 200 while clients can use the broker; otherwise 503, and why in one line |

A broker is not ready while it starts and perhaps recovers its store, while it stops, and while its
store accepts no messages.

The pages have no access control. By default, they are served where the broker listens: on this
machine only, unless `brokerIP1` is another address. A client must send its request within 10
seconds. At most 64 connections are served at the same time, and 8 of one address.

Prometheus needs this:

```yaml
scrape_configs:
  - job_name: mqlake
    static_configs:
      - targets: ["127.0.0.1:5557"]
```

[examples/monitoring](../examples/monitoring) has alert
rules for Prometheus and a board for Grafana.

## Metrics

Names that begin with `rocketmq_` are those of RocketMQ 5.5, with its units and labels; the others
exist only here. All samples also have the labels `cluster`, `node_type` (`broker`), `node_id` (the
broker's name) and those of `metricsLabel`. Totals count from the start of the broker, and a topic
that is deleted has no samples any more.
"""

TAIL = """\
## Differences from RocketMQ

- `message_type` is what the topic is declared for (`message.type`), and `normal` without a
  declaration. RocketMQ looks at each message.
- Sizes of messages are added up every 10 seconds.
- `version` is the number that the client sends, without the name that RocketMQ gives it.
- Consumers that pop have the same samples as those that pull, with `is_retry="false"`.
- `rocketmq_rpc_latency`: requests that arrive together may be served in one call, and then each has
  the duration of that call. `is_long_polling` is true for requests that waited for messages. An
  error of the broker itself is counted as its answer, `system_error`. Requests that are refused
  before they are served are in `mqlake_refused_requests_total`.
- `rocketmq_half_messages` has a number for each topic, which RocketMQ counts in a file of its own.
  `mqlake_half_messages` counts the half messages themselves.
- A message with a delivery time that is put again while it waits is counted once.
- These do not exist here: `rocketmq_processor_watermark`, because there are no thread pools;
  `rocketmq_message_size`, `rocketmq_delay_message_latency`,
  `rocketmq_topic_create_execution_time` and `rocketmq_consumer_group_create_execution_time`; and
  the exporters `OTLP_GRPC` and `LOG`.
- Names have units, as RocketMQ's have since its update of OpenTelemetry (5.4). Boards for older
  releases name `rocketmq_storage_size` what is `rocketmq_storage_size_bytes` here.
"""

_HEADER = ("| metric | kind | labels | meaning |", "| --- | --- | --- | --- |")
_GROUPS: tuple[tuple[str, tuple[ModuleType, ...]], ...] = (
    ("Messages", (traffic,)),
    ("Consumers", (lag,)),
    ("Clients and requests", (connections,)),
    ("Store", (storage,)),
    ("Transactions and delivery times", (delivery,)),
    ("Pops", (pops,)),
    ("Replication", (replication,)),
    ("Process", (pages,)),
)


def metrics_of(module: ModuleType) -> list[Metric]:
    """Return the metrics that a module defines, in their order."""
    return [each for each in vars(module).values() if isinstance(each, Metric)]


def all_metrics() -> list[Metric]:
    """Return all metrics of a broker."""
    modules = (module for _, of_group in _GROUPS for module in of_group)
    return [metric for module in modules for metric in metrics_of(module)]


def page() -> str:
    """Return the page in Markdown."""
    parts = [HEAD]
    for title, modules in _GROUPS:
        rows = [_row(metric) for module in modules for metric in metrics_of(module)]
        table = "\n".join(
            ["| metric | kind | labels | meaning |", "| --- | --- | --- | --- |", *rows]
        )
        parts.append(f"### {title}\n\n{table}\n")
    return "\n".join([*parts, TAIL])


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.prometheus_name}` | {metric.kind.value} | {labels} | {metric.help} |"


if __name__ == "__main__":
    sys.stdout.write(page())
