"""Protobuf messages of checkpoints."""
