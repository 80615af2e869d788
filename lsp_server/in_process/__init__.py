"""What monitors the process it runs in: `pytest --magpy`, and the cell magic `%%magpy`."""
