"""Output formats, one file each: concise, full, as_json, ...; and the summaries run_table, regions and statistics.

Each takes a Report with selected and sorted findings and yields ``rich`` Text lines. This package prints nothing.
"""
