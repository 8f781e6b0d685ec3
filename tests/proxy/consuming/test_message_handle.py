"""Receipt handles come from clients: any text may be one."""

from __future__ import annotations

import pytest

from mqlake.proxy.consuming.message_handle import (
    UNKNOWN_OFFSET,
    HandleFormatError,
    parse_handle,
)

WORDS = "4 1700000000000 60000 3 1 broker-a 2 7"


def test_a_handle_is_a_receipt_and_a_physical_offset() -> None:
    found = parse_handle(f"{WORDS} 1234")
    assert (found.receipt.text, found.physical_offset) == (WORDS, 1234)
    assert found.text == f"{WORDS} 1234"
    assert found.visible_at == 1_700_000_060_000
    assert found.real_topic("T", "g") == "%RETRY%g_T"


@pytest.mark.parametrize("ninth", ["", " ", " -1", " x", f" {'9' * 30}"])
def test_a_handle_without_a_ninth_word_has_no_physical_offset(ninth: str) -> None:
    found = parse_handle(WORDS + ninth)
    assert (found.physical_offset, found.text) == (UNKNOWN_OFFSET, WORDS)


def test_a_tenth_word_is_ignored_as_upstream_repeats_the_ninth() -> None:
    assert parse_handle(f"{WORDS} 1234 1234").text == f"{WORDS} 1234"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "wrong",
        " ".join(WORDS.split(" ")[:7]),
        WORDS.replace("4 ", "-4 ", 1),
        WORDS.replace("60000", "9" * 40),
        WORDS.replace(" 1 broker", " 9 broker"),
        WORDS + " " * 5000,
        "\0" * 100,
    ],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(HandleFormatError):
        parse_handle(text)
