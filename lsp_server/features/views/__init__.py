"""What an editor's views show of a run beyond its findings: a tree, graphs, code with links to lines."""
