"""Another client: Emacs with Eglot, with the configuration of docs/how-to/editors.md. Skipped where there is no Eglot."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editor.test_neovim import SCENARIO
from tests.lsp.conftest import Lab
from tests.lsp.conftest import lab as lab  # the fixture

ROOT = Path(__file__).parents[2]
# Waits are on conditions; one that never comes true ends the test with what is missing.
SCRIPT = """
(setq eglot-sync-connect 20 seen nil)
(defun wait (what good)
  (let ((end (+ (float-time) 20)))
    (while (and (not (funcall good)) (< (float-time) end))
      (accept-process-output nil 0.02)))
  (push (cons what (if (funcall good) t :json-false)) seen))
(find-file (getenv "MAGPY_FILE"))
(call-interactively #'eglot)
(wait 'attached #'eglot-current-server)
(defun findings () (flymake-start) (flymake-diagnostics))
(defun lenses ()
  (vconcat (mapcar (lambda (lens) (plist-get (plist-get lens :command) :title))
    (jsonrpc-request (eglot-current-server) :textDocument/codeLens
      `(:textDocument (:uri ,(concat "file://" (file-truename buffer-file-name))))))))
(push (cons 'lenses (lenses)) seen)
(magpy-check)
(wait 'streamed #'findings)
(push (cons 'running magpy-status) seen)
(when (findings) ; else nobody waits there, and opening it would wait for ever
  (write-region "" nil (getenv "MAGPY_GATE") t 'quiet))
(wait 'ended (lambda () (string-match-p "complete" magpy-status)))
(push (cons 'diagnostics
  (vconcat (mapcar (lambda (d)
      (vector (buffer-substring-no-properties (flymake-diagnostic-beg d) (flymake-diagnostic-end d))
              (substring-no-properties (flymake-diagnostic-text d))))
    (findings)))) seen)
(push (cons 'after (lenses)) seen)
(push (cons 'output (with-current-buffer "*magpy*" (buffer-string))) seen)
(magpy-clear)
(wait 'cleared (lambda () (not (findings))))
(with-temp-file (getenv "MAGPY_OUT") (set-buffer-file-coding-system 'utf-8) (insert (json-encode seen)))
(eglot-shutdown (eglot-current-server))
"""


def _has_eglot() -> bool:
    emacs = shutil.which("emacs")
    found = emacs and subprocess.run([emacs, "--batch", "--eval", "(require 'eglot)"], capture_output=True, timeout=60)
    return bool(found) and found.returncode == 0


@pytest.mark.skipif(not _has_eglot(), reason="Emacs with Eglot is not installed")
def test_emacs_checks_a_program(lab: Lab) -> None:
    (snippet,) = re.findall(r"```elisp\n(.*?)```", (ROOT / "docs" / "how-to" / "editors.md").read_text(), re.DOTALL)
    assert '"python3"' in snippet and ":interpreter ,magpy-python" in snippet
    # The server runs with this Python, the program with the laboratory's.
    snippet = snippet.replace('"python3"', json.dumps(sys.executable))
    snippet = snippet.replace(":interpreter ,magpy-python", f":interpreter {json.dumps(str(lab.python))}")
    snippet = snippet.replace("(add-hook 'python-mode-hook #'eglot-ensure)", "")  # there is no user whose pause it waits for
    lab.scenario(SCENARIO)
    lab.gate("go")
    folder = lab.folder / "emacs"
    folder.mkdir()
    (folder / "init.el").write_text(snippet)
    (folder / "script.el").write_text(SCRIPT)
    out, gate = folder / "out.json", lab.machine / "gate.go"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    env |= {"MAGPY_FILE": str(lab.program), "MAGPY_OUT": str(out), "MAGPY_GATE": str(gate)}
    command = ["emacs", "--batch", "-l", str(folder / "init.el"), "-l", str(folder / "script.el")]
    ended = subprocess.run(command, cwd=lab.folder, env=env, capture_output=True, text=True, timeout=120)
    assert out.exists(), ended.stderr
    seen = json.loads(out.read_text(encoding="utf-8"))
    assert [seen[step] for step in ("attached", "streamed", "ended", "cleared")] == [True] * 4, (seen, ended.stderr)
    assert seen["lenses"] == ["Check", "Run compiled"]
    assert "Checking train.py" in seen["running"], "the finding was there while the program ran"
    ((text, message),) = seen["diagnostics"]
    assert text == "x.sum().item()" and "is read by Python" in message, (
        "the range counts UTF-16 units: a smiley is before it"
    )
    assert any(title.startswith("Net: 1 graph") for title in seen["after"])
    assert "loss 1.25" in seen["output"]
