"""Kernels that process a run of similar pulls in one call."""
