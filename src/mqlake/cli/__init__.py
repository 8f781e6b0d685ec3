"""The command line: parsing (`app`, `options`, `commands/`) and output (`output`, `views/`).

A command parses its options, calls the library, and hands one result to `output`. What the library
can do is not decided here.
"""
