"""Kernels that process a run of similar frames in one call."""
