"""A small GPT and its trainer, as a package."""
