"""A digest of what a proof runs."""

from __future__ import annotations

from tests.proved_code import code_of, sources


def test_code_has_the_module_and_what_it_imports() -> None:
    names = sources("tests.comparison.kafka")
    assert {
        "tests.comparison.kafka",
        "mqlake.kafka.files.owned_file",
        "mqlake.errors",
    } <= names.keys()
    assert not any(name.startswith("mqlake.broker") for name in names)
    assert all(path.is_file() for path in names.values())


def test_other_code_has_another_digest() -> None:
    assert code_of("tests.comparison.kafka") == code_of("tests.comparison.kafka")
    assert code_of("tests.comparison.kafka") != code_of("tests.comparison.store")


def test_commands_and_the_console_do_not_count() -> None:
    names = sources("tests.comparison.broker")
    assert "mqlake.broker.broker" in names
    assert not any(name.startswith(("mqlake.cli.", "mqlake.console.")) for name in names)
