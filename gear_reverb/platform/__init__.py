"""Parts that depend on where a server stores its checkpoints."""
