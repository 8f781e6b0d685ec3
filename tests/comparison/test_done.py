"""Runs of the comparison continue where others ended."""

from __future__ import annotations

from pathlib import Path

from tests.comparison import page
from tests.comparison.all import ALL, MODULES
from tests.comparison.done import Compared, all_parts, compared, comparing
from tests.done_parts import DonePart
from tests.proved_code import code_of


def test_a_part_is_all_failures_of_one_kind() -> None:
    assert len(all_parts()) == len({*all_parts()}) == sum(len(each.failures) for each in ALL)


def test_a_run_compares_the_parts_that_it_is_given(tmp_path: Path) -> None:
    parts = compared(tmp_path / "done.json")
    (part,) = comparing().run(["kafka-cuts FULL"], 1, seconds=60)
    parts.add(part)
    assert part.result.failures
    assert not part.result.violations
    assert parts.is_current("kafka-cuts FULL")


def test_page_tells_what_was_compared_with_the_code_as_it_is(tmp_path: Path) -> None:
    parts, written = compared(tmp_path / "done.json"), tmp_path / "page.md"
    first, second = ALL[0], ALL[1]
    code = code_of(MODULES[first.name])
    name = f"{first.name} {first.failures[0]}"
    parts.add(DonePart(name, code, "2026-01-02", 60, Compared(7, ["it was lost"])))
    name = f"{second.name} {second.failures[0]}"
    parts.add(DonePart(name, "other", "2026-01-01", 60, Compared(7, [])))
    page.write(parts, written)
    text = written.read_text()
    assert "**7 single failures over 1 workloads, 1 violations**, on 2026-01-02." in text
    assert f"| `{first.name}` | 7 | 1 | {len(first.failures)} | 1 |" in text
    assert f"| `{second.name}` | 7 | 0 | {len(second.failures)} | 0 |" in text
    assert "- it was lost" in text
