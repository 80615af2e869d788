"""Worlds, changes, comparison and runs: what every soundness test stands on."""
