"""Kernels over pulls that arrive in runs, all alike."""
