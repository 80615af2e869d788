"""Whether `magpy-lsp run` is ever noticeably slower than plain Python: whole processes of many programs, short and long."""
