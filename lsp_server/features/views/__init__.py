"""The data of an editor's views: a tree of runs, graphs, and code with links to source lines."""
