"""What a benchmark hands in: repeated measurements, and the bars they are held against."""

from __future__ import annotations

import statistics
from typing import Literal

import msgspec


class Series(msgspec.Struct, frozen=True):
    """One thing measured several times, in the order of measuring.

    `unit` is seconds or bytes; `work` says what each repetition went through, by plural noun,
    such as {"messages": 1048560, "bytes": 1073741824}, so that rates can be shown.
    """

    name: str
    unit: Literal["s", "B"]
    values: list[float]
    work: dict[str, int] = {}

    @property
    def median(self) -> float:
        return statistics.median(self.values)


class Bar(msgspec.Struct, frozen=True):
    """What is asked for, and what was measured, in the same unit."""

    text: str
    sign: Literal["≥", "≤", "<"]
    wanted: float
    measured: float
    unit: str

    @property
    def passed(self) -> bool:
        match self.sign:
            case "≥":
                return self.measured >= self.wanted
            case "≤":
                return self.measured <= self.wanted
            case "<":
                return self.measured < self.wanted


class Section(msgspec.Struct, frozen=True):
    """One published benchmark: how it was done, what came out, and remarks with figures in them.

    `begun` says when its run began.
    """

    name: str
    title: str
    method: str
    series: list[Series]
    bars: list[Bar]
    remarks: list[str] = []
    begun: str = ""


class Results(msgspec.Struct, frozen=True):
    """A run; benchmarks/results.json holds the last published one of each section."""

    begun: str
    machine: dict[str, str]
    versions: dict[str, str]
    options: dict[str, str]
    sections: list[Section]


def joined(old: Results | None, new: Results) -> Results:
    """Return a run with the sections of an earlier one that it did not measure again.

    They keep the versions of what only they use.
    """
    if old is None:
        return new
    versions, options = old.versions | new.versions, old.options | new.options
    again = {section.name: section for section in new.sections}
    kept = [again.pop(section.name, section) for section in old.sections]
    sections = [*kept, *again.values()]
    return msgspec.structs.replace(new, sections=sections, versions=versions, options=options)
