"""Convert stores of RocketMQ to log directories of Kafka, and the reverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.jobs.convert.report import ConvertReport as ConvertReport
    from mqlake.jobs.convert.to_kafka import convert_to_kafka as convert_to_kafka
    from mqlake.jobs.convert.to_rocketmq import convert_to_rocketmq as convert_to_rocketmq
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "ConvertReport": "report",
            "convert_to_kafka": "to_kafka",
            "convert_to_rocketmq": "to_rocketmq",
        },
    )
