"""Options as Spark hands them over, and the tables that document them."""
