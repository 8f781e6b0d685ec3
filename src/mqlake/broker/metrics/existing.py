"""Samples of topics that exist: the others are kept until their counts are dropped."""

from __future__ import annotations

from mqlake.broker.state.broker_state import BrokerState
from mqlake.metrics.counts import Counts, Histograms
from mqlake.metrics.metric import MetricFamily, Sample


def of_existing(
    state: BrokerState,
    metric: MetricFamily,
    counts: Counts | Histograms,
    place: int = 0,
    before: tuple[str, ...] = (),
) -> list[Sample]:
    """Return a sample for each of the counts whose topic exists.

    Args:
        place: of the topic among the labels.
        before: labels that all samples have in front of theirs.
    """
    return [
        Sample(metric, value, (*before, *labels))
        for labels, value in counts
        if labels[place] in state.topics
    ]
