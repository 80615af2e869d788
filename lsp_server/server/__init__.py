"""The language server: pygls over stdio, runs of entrypoints in their own processes. Never imports torch."""
