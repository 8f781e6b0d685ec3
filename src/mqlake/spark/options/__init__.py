"""Options as Spark passes them, and the tables that document them."""
