"""TLS of connections: settings, certificates, and the layer between a socket and its peer."""
