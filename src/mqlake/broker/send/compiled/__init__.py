"""Kernels over frames that arrive in runs, all alike."""
