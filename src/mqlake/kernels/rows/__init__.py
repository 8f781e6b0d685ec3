"""Hash tables of rows, which kernels and Python both read and change."""
