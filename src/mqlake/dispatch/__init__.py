"""From commit-log bytes to columns, and from columns to queue and index bytes (docs/dispatch.md).

The kernels exist twice: compiled by Numba (`compiled`), and as plain Python (`reference`) that says
what they mean. `kernel.load` chooses.
"""
