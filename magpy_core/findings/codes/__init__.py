"""The table of codes, one file per family; ``magpy_core.findings.registry`` joins them."""
