"""Archives of store directories: read like one, alone or together with the live directory."""
