"""Whole training steps as one region."""
