"""What compiled kernels are made of: Numba's decorators, loads and stores, checksums, texts.

Nothing here knows a record or a frame. Each package has its own kernels in a folder `compiled`.
"""
