"""How results look to a person: one module a kind of result, each gives things rich can draw."""
