"""The kernels, compiled by Numba: `calls` has what `mqlake.dispatch.kernel.Kernel` asks for."""
