"""What a call of gRPC costs a server."""
