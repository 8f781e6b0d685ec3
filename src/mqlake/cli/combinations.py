"""Which options of `mqlake follow` can be combined."""

from __future__ import annotations

from collections.abc import Mapping

from mqlake.cli.options import UsageError

_TABLES = ("delta", "iceberg", "parquet")
_VERSIONED = ("delta", "iceberg")

_TARGETS = {
    "--out": _TABLES,
    "--check": _TABLES,
    "--replay": _TABLES,
    "--subscribe": _TABLES,
    "--subscribe-pattern": _TABLES,
    "--starting-offsets": _TABLES,
    "--columns": _TABLES,
    "--system-topics": _TABLES,
    "--decompress": _TABLES,
    "--metrics": _TABLES,
    "--decode": _TABLES,
    "--upsert-by": _TABLES,
    "--table-per-topic": _VERSIONED,
    "--replica-of": _VERSIONED,
    "--replica-of-cluster": _VERSIONED,
    "--catalog": ("iceberg",),
    "--catalog-option": ("iceberg",),
    "--table": ("iceberg",),
}
"""The values of `--to` that an option can be combined with, if these are not all."""

_NEEDED = {
    "--decode-option": ("--decode",),
    "--keep-hours": ("--replica-of", "--replica-of-cluster"),
    "--no-ha-tls": ("--replica-of", "--replica-of-cluster"),
    "--keep-bytes": ("--replica-of", "--replica-of-cluster"),
}
"""The options of which an option needs one."""

_EXCLUSIVE = (
    ("--check", "--replay"),
    ("--check", "--replica-of"),
    ("--check", "--replica-of-cluster"),
    ("--replay", "--replica-of"),
    ("--replay", "--replica-of-cluster"),
    ("--replica-of", "--replica-of-cluster"),
    ("--check", "--metrics"),
    ("--replay", "--metrics"),
    ("--table-per-topic", "--table"),
)


def check_combination(to: str, options: Mapping[str, object]) -> None:
    """Refuse options that cannot be combined.

    Args:
        to: the value of `--to`.
        options: the values of other options by name; None, False or empty if not given.

    Raises:
        UsageError: options cannot be combined, or one is missing.
    """
    given = {name for name, value in options.items() if not _is_absent(value)}
    for name, targets in _TARGETS.items():
        if name in given and to not in targets:
            raise UsageError(f"{name} cannot be combined with --to {to}; use --to {_or(targets)}")
    for name, needed in _NEEDED.items():
        if name in given and given.isdisjoint(needed):
            raise UsageError(f"{name} needs {_or(needed)}")
    for one, other in _EXCLUSIVE:
        if one in given and other in given:
            raise UsageError(f"{one} and {other} cannot be combined")
    if to in _TABLES and "--out" not in given:
        raise UsageError(f"--to {to} needs --out, the table to write to")


def named_values(given: list[str] | None, option: str) -> dict[str, str]:
    """Return NAME=VALUE options by name. Errors do not show values, which may be secret.

    Raises:
        UsageError: an option has another form.
    """
    found: dict[str, str] = {}
    for one in given or []:
        name, separator, value = one.partition("=")
        if not separator or not name:
            raise UsageError(f"{option} needs NAME=VALUE")
        found[name] = value
    return found


def _is_absent(value: object) -> bool:
    return value is None or value is False or value in ("", [])


def _or(names: tuple[str, ...]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
