from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.dispatch.derived.key_hashes import key_hashes
from mqlake.formats.java_string import index_key_hash

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=40)


@given(st.lists(ANY_TEXT, max_size=20))
def test_each_hash_is_that_of_one_text(texts: list[str]) -> None:
    assert key_hashes(texts).tolist() == [index_key_hash(text) for text in texts]


@pytest.mark.parametrize("text", ["polygenelubricants", "", "\U0001f600", "\ud800", "Aa" * 5000])
def test_each_hash_is_that_of_one_text_at_the_edges(text: str) -> None:
    assert key_hashes([text, "between", text]).tolist() == [
        index_key_hash(text),
        index_key_hash("between"),
        index_key_hash(text),
    ]
