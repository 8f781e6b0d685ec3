"""What RocketMQ's broker does, as it is kept, and why it is not what mqlake's does."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import NamedTuple

from tests.broker.endings.events import OF_BROKERS, OF_TOPICS
from tests.broker.endings.pieces import Outcome
from tests.broker.endings.table import PIECES
from tests.peer.endings.run import Found

RECORDED = Path(__file__).parent / "results.json"
REASONS = Path(__file__).parent / "reasons.toml"

EVENTS = tuple(dict.fromkeys((*OF_TOPICS, *OF_BROKERS)))
"""Those that go over the wire, or are a start."""


class Cell(NamedTuple):
    """An event and a piece by their names."""

    event: str
    piece: str


def of_table() -> Found:
    """Return what mqlake's broker does."""
    return {
        event: {piece.name: piece.outcomes[event] for piece in PIECES if event in piece.outcomes}
        for event in EVENTS
    }


def load() -> Found:
    """Return what RocketMQ's broker did in the run that is kept."""
    kept = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    return {
        event: {piece: Outcome(outcome) for piece, outcome in pieces.items()}
        for event, pieces in kept.items()
    }


def save(found: Found) -> None:
    """Keep what RocketMQ's broker did; events that were not part of the run stay as they were."""
    RECORDED.write_text(json.dumps(load() | found, indent=1, sort_keys=True) + "\n", "utf-8")


def differences() -> dict[Cell, tuple[Outcome, Outcome]]:
    """Return what mqlake's broker and RocketMQ's do where that is not the same."""
    recorded = load()
    return {
        Cell(event, piece): (ours, recorded[event][piece])
        for event, pieces in of_table().items()
        for piece, ours in pieces.items()
        if recorded[event][piece] is not ours
    }


def reasons() -> dict[Cell, str]:
    """Return why RocketMQ's broker does something else.

    Raises:
        ValueError: a cell has two reasons.
    """
    found: dict[Cell, str] = {}
    for table in tomllib.loads(REASONS.read_text("utf-8"))["reason"]:
        for event in table["events"]:
            for piece in table["pieces"]:
                if Cell(event, piece) in found:
                    raise ValueError(f"two reasons for {piece} in {event}")
                found[Cell(event, piece)] = table["why"]
    return found
