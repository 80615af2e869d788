/** The status bar item. */

import * as vscode from "vscode";
import type { RunStatus } from "./protocol";
import { codeOf } from "./findingCode";
import { type Problems, RunList, type ServerState, statusText } from "./statusText";

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("magpy.status", vscode.StatusBarAlignment.Left, 10);
  private readonly runs = new RunList();
  private server: ServerState = "stopped";
  private problem = "";
  private readonly changes = vscode.languages.onDidChangeDiagnostics(() => {
    this.render();
  });

  constructor() {
    this.item.name = "MagPy";
    this.render();
    this.item.show();
  }

  serverState(state: ServerState, problem = ""): void {
    this.server = state;
    this.problem = problem;
    if (state !== "ready") {
      this.runs.clear(); // the runs ended with the server
    }
    this.render();
  }

  run(status: RunStatus): void {
    this.runs.update(status);
    this.render();
  }

  clearRuns(): void {
    this.runs.clear();
    this.render();
  }

  private render(): void {
    const { text, tooltip, level, command } = statusText(this.server, this.runs.all, this.problem, problemsOfOurs());
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.command = command ?? "magpy.showMenu";
    this.item.backgroundColor = level === "error" ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
  }

  dispose(): void {
    this.changes.dispose();
    this.item.dispose();
  }
}

function problemsOfOurs(): Problems {
  const found = { error: 0, warning: 0 };
  for (const diagnostic of vscode.languages.getDiagnostics().flatMap(([, ofFile]) => ofFile)) {
    if (codeOf(diagnostic) !== undefined) {
      found.error += Number(diagnostic.severity === vscode.DiagnosticSeverity.Error);
      found.warning += Number(diagnostic.severity === vscode.DiagnosticSeverity.Warning);
    }
  }
  return found;
}
