"""Typed bodies: JSON, Avro, Protobuf and CloudEvents as columns (docs/typed-bodies.md)."""
