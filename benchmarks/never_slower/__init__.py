"""Whether `magpy-lsp run` is ever noticeably slower than eager mode: whole processes of many programs, short and long."""
