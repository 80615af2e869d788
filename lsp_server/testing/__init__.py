"""The pytest plugin: `pytest --magpy`."""
