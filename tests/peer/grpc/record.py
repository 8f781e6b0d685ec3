"""What was observed of both sides, as it is kept, and why it is not the same."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.peer.grpc.run import SCENARIOS, Observations
from tests.peer.grpc.sides import JAVA, MQLAKE

RECORDED = Path(__file__).parent / "results.json"
REASONS = Path(__file__).parent / "reasons.toml"
WHOLE = "all"
"""What a scenario is compared by that has no parts."""

Found = dict[str, Observations]
"""By the name of the side."""

ABSENT = "absent"


class Cell(NamedTuple):
    """Something that the client of one language observes."""

    scenario: str
    what: str
    language: str


class Pair(NamedTuple):
    """What is observed of each side."""

    ours: str
    theirs: str


def load() -> Found:
    """Return what was observed in the runs that are kept."""
    kept: Found = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    return {side: kept.get(side, {}) for side in (MQLAKE, JAVA)}


def save(found: Found) -> None:
    """Keep observations; those of scenarios and languages that had no part in the run stay."""
    kept = load()
    for side, observations in ((side, each) for side, each in found.items() if side in kept):
        for scenario, by_language in observations.items():
            kept[side].setdefault(scenario, {}).update(by_language)
    current = {
        side: {name: each for name, each in observations.items() if name in SCENARIOS}
        for side, observations in kept.items()
    }
    text = json.dumps(current, indent=1, sort_keys=True, ensure_ascii=False)
    RECORDED.write_text(text + "\n", "utf-8")


def _parts(observation: Any) -> Mapping[str, Any]:
    return observation if isinstance(observation, dict) else {WHOLE: observation}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def differences(found: Found) -> dict[Cell, Pair]:
    """Return what is not the same on both sides, of all that was observed of both."""
    pairs: dict[Cell, Pair] = {}
    for scenario, by_language in found[MQLAKE].items():
        for language, observation in by_language.items():
            if language not in found[JAVA].get(scenario, {}):
                continue
            ours, theirs = _parts(observation), _parts(found[JAVA][scenario][language])
            for what in sorted(ours.keys() | theirs.keys()):
                pair = Pair(_text(ours.get(what, ABSENT)), _text(theirs.get(what, ABSENT)))
                if pair.ours != pair.theirs:
                    pairs[Cell(scenario, what, language)] = pair
    return pairs


def reasons() -> dict[tuple[str, str], str]:
    """Return why sides differ, by the scenario and what is compared.

    Raises:
        ValueError: a cell has two reasons.
    """
    found: dict[tuple[str, str], str] = {}
    for table in tomllib.loads(REASONS.read_text("utf-8")).get("reason", []):
        for scenario in table["scenarios"]:
            for what in table["what"]:
                if (scenario, what) in found:
                    raise ValueError(f"two reasons for {what} in {scenario}")
                found[scenario, what] = table["why"]
    return found


def unexpected(found: Found) -> list[str]:
    """Return a line for each difference that is not kept, and each that is no longer one."""
    kept, live = differences(load()), differences(found)
    known = {
        Cell(scenario, what, language)
        for scenario, by_language in found[MQLAKE].items()
        for language, observation in by_language.items()
        if language in found[JAVA].get(scenario, {})
        for what in _parts(observation)
    } | live.keys()
    lines = [
        f"{'/'.join(cell)}: mqlake {pair.ours}, RocketMQ {pair.theirs}; kept: {kept.get(cell)}"
        for cell, pair in live.items()
        if kept.get(cell) != pair
    ]
    gone = [cell for cell in kept if cell in known and cell not in live]
    return lines + [f"{'/'.join(cell)}: no difference; kept: {kept[cell]}" for cell in gone]
