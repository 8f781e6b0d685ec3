"""Settings of a small session."""

from __future__ import annotations

from tests.spark.interpreted import INTERPRETED

SMALL = {
    **INTERPRETED,
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
