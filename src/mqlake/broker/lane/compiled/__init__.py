"""The kernels of the lane."""
