from mqlake.table import open as open  # noqa: A004 (users write mqlake.open)

__version__: str
