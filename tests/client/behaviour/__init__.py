"""What producers and consumers do, whoever the broker is: the same assertions for all of them."""
