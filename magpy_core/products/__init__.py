"""What stands beside the engine: other tools on the same runner."""
