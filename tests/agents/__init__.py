"""Tests of the server for coding assistants, with the client of the package ``mcp``."""
