"""What a run found, as it is kept; and why mqlake does not do what some of the tests expect."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tests.peer.compatibility.java_class import FAILED, IGNORED, Outcome
from tests.peer.compatibility.run import Results

RECORDED = Path(__file__).parent / "results.json"
REASONS = Path(__file__).parent / "reasons.toml"

Record = dict[str, dict[str, Outcome]]
"""Outcomes by "class#method" and by side."""


def load(path: Path = RECORDED) -> Record:
    """Return what is kept, without the methods that RocketMQ itself ignores."""
    kept = json.loads(path.read_text())
    outcomes = {
        name: {side: Outcome(**outcome) for side, outcome in sides.items()}
        for name, sides in kept.items()
    }
    return {
        name: sides
        for name, sides in outcomes.items()
        if any(outcome.state != IGNORED for outcome in sides.values())
    }


def save(results: Mapping[str, Results], keep: bool, path: Path = RECORDED) -> None:
    """Keep what a run found on each side; with `keep`, what it did not run stays as it was."""
    kept = json.loads(path.read_text()) if keep and path.exists() else {}
    for side, outcomes in results.items():
        for name, outcome in outcomes.items():
            kept.setdefault(name, {})[side] = asdict(outcome)
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def reasons() -> dict[str, str]:
    """Return why a method fails against mqlake or Java's brokers, by "class#method"."""
    tables = tomllib.loads(REASONS.read_text())["reason"]
    return {method: table["why"] for table in tables for method in table["methods"]}


def circumstances() -> str:
    """Return what is to be known about how the recorded runs were made."""
    return tomllib.loads(REASONS.read_text())["circumstances"].strip()


def unexplained(results: Results) -> list[str]:
    """Return the methods that failed though no reason is given."""
    known = reasons()
    return [
        name for name, outcome in results.items() if outcome.state == FAILED and name not in known
    ]
