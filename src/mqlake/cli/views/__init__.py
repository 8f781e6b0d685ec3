"""How results look to a person. Each module draws one kind of result with rich."""
