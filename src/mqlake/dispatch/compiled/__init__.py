"""The kernels, compiled by Numba. Import nothing from here where `mqlake.dispatch.kernel` serves."""
