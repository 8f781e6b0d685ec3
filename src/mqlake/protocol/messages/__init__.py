"""What producers and consumers do with messages, whatever the request that carries them."""
