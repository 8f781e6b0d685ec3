"""Bodies that name schemas which do not exist spoil no others."""

from __future__ import annotations

import pytest

from mqlake.errors import FormatError
from mqlake.query.bodies import registry


def test_ids_without_schemas_keep_no_schema_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_MOST_SCHEMAS", 3)
    asked: list[str] = []

    def get(_: registry.Registry, path: str) -> dict[str, object] | None:
        asked.append(path)
        return {"schema": '"string"'} if path.endswith("/99") else None

    monkeypatch.setattr(registry.Registry, "_get", get)
    found = registry.Registry("http://localhost:1")
    for number in range(10):
        with pytest.raises(FormatError, match="has no schema"):
            found.schema(number)
    assert found.schema(99) == found.schema(99)
    assert len(asked) == 11
