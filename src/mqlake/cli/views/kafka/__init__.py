"""How results of `mqlake kafka` look to a person."""
