"""Runs of pulls that are counted."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mqlake.broker.pull import warm_up
from mqlake.broker.pull.runs import PullRuns
from mqlake.broker.state.broker_state import BrokerState
from mqlake.remoting.connection import Peer
from mqlake.remoting.frame_reader import Frames
from tests.broker.pull.pulls import GROUP

Offsets = tuple[int | None, int | None]


class ServedFrames(list[bytes]):
    """Frames that were served in runs.

    Attributes:
        alone: how many of them arrived alone, and were answered at once.
    """

    alone = 0


def count_runs(monkeypatch: pytest.MonkeyPatch) -> ServedFrames:
    """Let runs be served from the first pull on; return the list that gets their frames."""
    served, take, take_one = ServedFrames(), PullRuns.take, PullRuns.take_one
    kernel = warm_up.load()

    def counted(runs: PullRuns, peer: Peer, frames: Frames) -> int:
        at = frames.at
        count = take(runs, peer, frames)
        while at < frames.at:
            end = at + 4 + int.from_bytes(frames.data[at : at + 4])
            served.append(frames.data[at:end])
            at = end
        return count

    def counted_one(runs: PullRuns, peer: Peer, frames: Frames) -> bytes | None:
        answer = take_one(runs, peer, frames)
        if answer is not None:
            served.append(frames.data)
            served.alone += 1
        return answer

    def loaded(_: PullRuns) -> object:
        return kernel

    monkeypatch.setattr(PullRuns, "_kernel", loaded)
    monkeypatch.setattr(PullRuns, "take", counted)
    monkeypatch.setattr(PullRuns, "take_one", counted_one)
    return served


def pull_counts(state: BrokerState) -> tuple[int, int, int]:
    """Return how many messages were got, and how many pulls found some or none."""
    return state.stats.got_total, state.stats.pulls, state.stats.missed


def committed(state: BrokerState, queues: Iterable[tuple[str, int]]) -> list[Offsets]:
    """Return the offsets that pulls of two groups committed, and up to where they pulled."""
    offsets = state.store.config.consumer_offsets
    return [
        (offsets.query(group, *queue), offsets.query_pull(group, *queue))
        for group in (GROUP, "others")
        for queue in queues
    ]
