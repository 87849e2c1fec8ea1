"""Protobuf messages of the wire and of the checkpoint, under Reverb's module names."""
