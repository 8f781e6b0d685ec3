"""A slow machine for the tests: `pytest --slow-machine SEED`.

Each test gets delays that its name and the seed decide: of dispatch, of the disk, of the event
loop, of threads, of connections and of processes that it started. A test that fails only with them
asks for something earlier than the product promises it, or the product promises too little.
"""
