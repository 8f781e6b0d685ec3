"""Options of a command that belong together, as one parameter of its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., int]) -> Callable[..., int]:
    """Return a command whose groups of options are parsed like parameters of its own.

    A group is a `NamedTuple` whose fields are options. Options keep the order of the parameters,
    and that of the fields within a group. Their names are unique in the command.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    options: list[Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if isinstance(kind, type) and issubclass(kind, tuple):
            groups[parameter.name] = kind
            options += _fields(kind)
        else:
            options.append(
                Parameter(
                    parameter.name,
                    Parameter.KEYWORD_ONLY,
                    default=parameter.default,
                    annotation=kind,
                )
            )

    def run(**given: Any) -> int:
        values = {
            name: kind(**{field: given.pop(field) for field in kind._fields})
            for name, kind in groups.items()
        }
        return command(**values, **given)

    run.__doc__ = command.__doc__
    vars(run)["__signature__"] = Signature(options)
    return run


def _fields(group: Any) -> Iterator[Parameter]:
    """Yield the options of a group."""
    for name, kind in get_type_hints(group, include_extras=True).items():
        default = group._field_defaults.get(name, Parameter.empty)
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
