"""Values as text: what a terminal would obey is shown, and what is cut is marked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.cli.text import count, local_time, preview, printable, rate, size


@pytest.fixture(autouse=True)
def _in_tokyo(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (1795206616198, "2026-11-21 05:30:16.198"),
        (1, "1970-01-01 09:00:00.001"),
        (0, "-"),
        (-5, "-5 ms"),
        ((1 << 63) - 1, f"{(1 << 63) - 1} ms"),
    ],
)
def test_local_time(milliseconds: int, text: str) -> None:
    assert local_time(milliseconds) == text


@pytest.mark.parametrize(
    ("length", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (1023, "1,023 bytes"), (1024, "1.0 KiB"), (5 << 30, "5.0 GiB")],
)
def test_size(length: int, text: str) -> None:
    assert size(length) == text


def test_count() -> None:
    assert count(1, "message") == "1 message"
    assert count(1234, "message") == "1,234 messages"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", ""),
        (b"paid", "paid"),
        ("键值".encode(), "键值"),
        (b'{"a":\n1}', '{"a":\\n1}'),
        (b"x" * 11, "x" * 10 + "…"),
        ("é".encode() * 11, "é" * 10 + "…"),
        (b"\x1b[2J", "0x1b5b324a"),
        (b"\xff\xfe", "0xfffe"),
        (bytes(40), "0x" + "00" * 5 + "…"),
    ],
)
def test_preview(body: bytes, shown: str) -> None:
    assert preview(body, 10) == shown


@given(st.text(max_size=50), st.integers(1, 60))
def test_preview_of_text_is_its_beginning(text: str, limit: int) -> None:
    shown = preview(text.encode("utf-8", "ignore"), limit)
    if text.isprintable():
        assert shown.removesuffix("…") == text[: len(shown.removesuffix("…"))]
    assert shown.isprintable()


@given(st.binary(max_size=200), st.integers(1, 60))
def test_preview_is_always_printable(body: bytes, limit: int) -> None:
    assert preview(body, limit).isprintable()


@given(st.text())
def test_printable_keeps_what_can_be_shown(text: str) -> None:
    assert printable(text).isprintable()
    if text.isprintable():
        assert printable(text) == text


@pytest.mark.parametrize(
    ("length", "seconds", "found"),
    [
        (1000, 0.0, "-"),
        (41_000, 10.0, "4 kB/s"),
        (2_500_000, 1.0, "2.5 MB/s"),
        (25_000_000, 1.0, "25 MB/s"),
        (2_500_000_000, 1.0, "2,500 MB/s"),
    ],
)
def test_rates(length: int, seconds: float, found: str) -> None:
    assert rate(length, seconds) == found
