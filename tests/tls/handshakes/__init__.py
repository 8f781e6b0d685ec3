"""TLS handshakes, and the headers of proxies before them, that are changed on their way."""
