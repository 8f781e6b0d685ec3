"""Write docs/benchmarks.md from the results of a run."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.results import Bar, Results, Section, Series

HEAD = """\
# Benchmarks

`make bench` (or `python -m benchmarks NAME…` for some of it) wrote this page, together with the
raw results in `benchmarks/results.json`. Each section is one run on one machine. The Java side is
Apache RocketMQ's own store, in a JVM that is warm: the same work was done several times in that
process before the first figure was taken. mqlake and Java take turns (A B A B), on the same files,
in the page cache. Figures are medians, with the smallest and the largest value beside them; compare
ratios, because machines differ.
"""


def page(results: Results) -> str:
    """Return the whole page."""
    bars = [bar for section in results.sections for bar in section.bars]
    parts = [
        HEAD,
        _table(("bar", "wanted", "measured", "verdict"), [_bar(bar) for bar in bars]),
        f"## Machine and versions\n\nOf the last run, begun {results.begun}.\n",
        _table(("what", "value"), _facts(results)),
        *(part for section in results.sections for part in _section(section)),
    ]
    return "\n".join(parts)


def _facts(results: Results) -> list[tuple[str, str]]:
    return [*results.machine.items(), *results.versions.items(), *results.options.items()]


def _bar(bar: Bar) -> tuple[str, ...]:
    verdict = "PASS" if bar.passed else "MISS"
    return (
        bar.text,
        f"{bar.sign} {number(bar.wanted)} {bar.unit}",
        f"{number(bar.measured)} {bar.unit}",
        verdict,
    )


def _section(section: Section) -> list[str]:
    rows = [_series(series) for series in section.series]
    names = ("what", "median", "smallest", "largest", "rate")
    remarks = [f"- {remark}" for remark in section.remarks]
    begun = f"\n\nBegun {section.begun}." if section.begun else ""
    parts = [f"## {section.title}\n\n{section.method}{begun}\n", _table(names, rows)]
    return [*parts, "\n".join(remarks) + "\n"] if remarks else parts


def _series(series: Series) -> tuple[str, ...]:
    values = (series.median, min(series.values), max(series.values))
    return (series.name, *(quantity(value, series.unit) for value in values), _rates(series))


def _rates(series: Series) -> str:
    rates = [(noun, count / series.median) for noun, count in series.work.items()]
    return ", ".join(
        f"{number(rate / 1e6)} MB/s" if noun == "bytes" else f"{number(rate / 1e6)} M {noun}/s"
        for noun, rate in rates
    )


def quantity(value: float, unit: str) -> str:
    """Return a number of seconds or bytes with a unit that suits its size."""
    if unit == "B":
        return f"{number(value / (1 << 20))} MiB"
    for factor, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{number(value / factor)} {name}"
    return f"{number(value * 1e9)} ns"


def number(value: float) -> str:
    """Return three significant digits, without an exponent."""
    digits = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(0, 3 - digits)}f}"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
