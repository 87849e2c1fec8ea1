"""The parts for ordinary file systems."""
