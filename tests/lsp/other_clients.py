"""How other editors present themselves, as far as it concerns us: their capabilities in ``initialize``.

From the editors' sources: helix-lsp/src/client.rs of Helix, crates/lsp/src/lsp.rs of Zed, ClientCapabilitiesFactory.java
of LSP4IJ, the plugin for JetBrains IDEs.
"""

from __future__ import annotations

from typing import Any

_FIXED: dict[str, bool] = {"dynamicRegistration": False}
_DYNAMIC: dict[str, bool] = {"dynamicRegistration": True}

HELIX: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "diagnostics": {"refreshSupport": True},
        "didChangeConfiguration": _FIXED,
        "didChangeWatchedFiles": {**_DYNAMIC, "relativePatternSupport": True},
        "executeCommand": _FIXED,
        "inlayHint": {"refreshSupport": False},
        "workspaceEdit": {"documentChanges": True, "failureHandling": "abort", "normalizesLineEndings": False},
        "workspaceFolders": True,
    },
    "textDocument": {
        "codeAction": {
            "codeActionLiteralSupport": {
                "codeActionKind": {"valueSet": ["", "quickfix", "refactor", "refactor.rewrite", "source", "source.fixAll"]}
            },
            "dataSupport": True,
            "disabledSupport": True,
            "isPreferredSupport": True,
            "resolveSupport": {"properties": ["edit", "command"]},
        },
        "diagnostic": {**_FIXED, "relatedDocumentSupport": True},
        "hover": {"contentFormat": ["markdown"]},
        "inlayHint": _FIXED,
        "publishDiagnostics": {"tagSupport": {"valueSet": [1, 2]}, "versionSupport": True},
    },
    "window": {
        "showDocument": {"support": True},
        "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
        "workDoneProgress": True,
    },
}

ZED: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "diagnostics": {"refreshSupport": True},
        "didChangeConfiguration": _DYNAMIC,
        "didChangeWatchedFiles": {**_DYNAMIC, "relativePatternSupport": True},
        "inlayHint": {"refreshSupport": True},
        "workspaceEdit": {"documentChanges": True, "snippetEditSupport": True},
        "workspaceFolders": True,
    },
    "textDocument": {
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["refactor", "quickfix", "source"]}},
            "dataSupport": True,
            "resolveSupport": {"properties": ["kind", "diagnostics", "isPreferred", "disabled", "edit", "command"]},
        },
        "diagnostic": {**_FIXED, "relatedDocumentSupport": True},
        "hover": {"contentFormat": ["markdown"]},
        "inlayHint": {**_FIXED, "resolveSupport": {"properties": ["textEdits", "tooltip", "label.tooltip"]}},
        "publishDiagnostics": {"relatedInformation": True},
        "synchronization": {"didSave": True},
    },
    "window": {"showMessage": {}, "workDoneProgress": True},
    "experimental": {"localDocs": True, "serverStatusNotification": True},
}

LSP4IJ: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"], "staleRequestSupport": {"cancel": True, "retryOnContentModified": []}},
    "workspace": {
        "applyEdit": True,
        "codeLens": {"refreshSupport": True},
        "configuration": True,
        "diagnostics": {"refreshSupport": True},
        "didChangeConfiguration": _DYNAMIC,
        "didChangeWatchedFiles": _DYNAMIC,
        "executeCommand": _DYNAMIC,
        "inlayHint": {"refreshSupport": True},
        "workspaceEdit": {"documentChanges": True},
        "workspaceFolders": True,
    },
    "textDocument": {
        "codeAction": {
            **_DYNAMIC,
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor", "source"]}},
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
        "codeLens": _DYNAMIC,
        "diagnostic": {**_DYNAMIC, "relatedDocumentSupport": True},
        "hover": {**_DYNAMIC, "contentFormat": ["markdown", "plaintext"]},
        "inlayHint": _DYNAMIC,
        "publishDiagnostics": {
            "codeDescriptionSupport": True,
            "dataSupport": True,
            "relatedInformation": True,
            "tagSupport": {"valueSet": [1, 2]},
        },
        "synchronization": {"didSave": True, "willSave": True, "willSaveWaitUntil": True},
    },
    "window": {"showDocument": {"support": True}, "showMessage": {}, "workDoneProgress": True},
}
