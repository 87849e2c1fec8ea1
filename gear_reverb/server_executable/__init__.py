"""A server as a program of its own."""
