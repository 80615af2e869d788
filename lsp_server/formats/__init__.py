"""Output formats, one file each: concise, full, as_json; run_table, regions and statistics below them.

Each takes a Report whose findings are already selected and sorted, and yields ``rich`` Text lines. Nothing here prints.
"""
