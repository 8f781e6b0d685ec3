"""Kernels over frames that come in runs, all alike."""
