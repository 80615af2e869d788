"""One monitored run: monitor events become reference-graph edges, operator-graph nodes, branches and refusals."""
