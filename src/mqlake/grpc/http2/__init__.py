"""HTTP/2 (RFC 9113, RFC 7541), as far as a server of gRPC needs it."""
