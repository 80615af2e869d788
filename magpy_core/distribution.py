"""What pip installs. Key name: DISTRIBUTION."""

#: `magpy` on the package index is another project's.
DISTRIBUTION = "magpy-lsp"
