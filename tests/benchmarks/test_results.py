from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from benchmarks.derived import DifferenceError, compare
from benchmarks.memory import peak_memory
from benchmarks.page import number, page, quantity
from benchmarks.publishing import PAGE, RAW
from benchmarks.results import Bar, Results, Section, Series, joined


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.000"), (0.0123, "0.012"), (1.2345, "1.23"), (12.345, "12.3"), (1234.5, "1234")],
)
def test_number_has_three_digits(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2.5, "s", "2.50 s"),
        (0.0025, "s", "2.50 ms"),
        (1.25e-6, "s", "1.25 µs"),
        (3 << 20, "B", "3.00 MiB"),
    ],
)
def test_quantity_has_a_fitting_unit(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("sign", "measured", "passed"),
    [("≥", 10, True), ("≥", 9.99, False), ("≤", 10, True), ("<", 10, False), ("<", 9.99, True)],
)
def test_bar_is_judged_by_its_sign(sign: str, measured: float, passed: bool) -> None:
    assert Bar("a bar", sign, 10, measured, "x").passed is passed


def test_page_shows_medians_rates_and_verdicts() -> None:
    series = Series("some work", "s", [3.0, 1.0, 2.0], {"messages": 4_000_000})
    bars = [Bar("fast", "≥", 1, 2, "x"), Bar("small", "<", 1, 2, "MiB")]
    section = Section("some", "Some work", "How.", [series], bars, ["A remark."])
    text = page(Results("today", {"cores": "2"}, {"Python": "3"}, {}, [section]))
    assert "| some work | 2.00 s | 1.00 s | 3.00 s | 2.00 M messages/s |" in text
    assert "| fast | ≥ 1.00 x | 2.00 x | PASS |" in text
    assert "| small | < 1.00 MiB | 2.00 MiB | MISS |" in text
    assert "- A remark." in text


def _derived(directory: Path, index_name: str, entry: bytes) -> Path:
    queue = directory / "consumequeue" / "topic" / "0"
    queue.mkdir(parents=True)
    (queue / "00000000000000000000").write_bytes(entry)
    (directory / "index").mkdir()
    (directory / "index" / index_name).write_bytes(b"index")
    return directory


def test_compare_ignores_index_names_and_nothing_else(tmp_path: Path) -> None:
    one = _derived(tmp_path / "one", "20260101000000000", b"entry")
    same = _derived(tmp_path / "same", "20260101000000001", b"entry")
    other = _derived(tmp_path / "other", "20260101000000000", b"Entry")
    assert (
        compare(one, same)
        == "1 consume-queue files and 1 index files, 10 bytes, are equal byte for byte"
    )
    with pytest.raises(DifferenceError, match="differ"):
        compare(one, other)


def test_peak_memory_sees_children() -> None:
    size = 64 << 20
    hold = f"held = bytes(bytearray(b'x') * {size}); print(len(held), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        peaks = peak_memory(os.getpid(), child.stdout.readline)
        child.communicate(b"\n")
    assert max(peaks.values()) >= size


def test_sections_that_were_not_measured_again_stay() -> None:
    def run(begun: str, *names: str) -> Results:
        sections = [Section(name, name, "method", [], [], begun=begun) for name in names]
        return Results(begun, {}, {}, {}, sections)

    both = joined(run("first", "a", "b", "c"), run("second", "d", "b"))
    assert [(section.name, section.begun) for section in both.sections] == [
        ("a", "first"),
        ("b", "second"),
        ("c", "first"),
        ("d", "second"),
    ]
    assert both.begun == "second"
    assert "This run began second." in page(both)
    assert joined(None, both) == both


def test_the_page_shows_the_raw_results() -> None:
    published = msgspec.json.decode(RAW.read_bytes(), type=Results)
    assert PAGE.read_text(encoding="utf-8") == page(published)
