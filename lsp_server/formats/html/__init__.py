"""One self-contained HTML page for a run. Key modules: page (the whole), source, graph, timeline, assets."""
