/** The run view: how a compiled run is going, beside the code, while it runs and after its end. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { LiveRun } from "../protocol";
import { LatestRun } from "./latestRun";
import { runHtml } from "./runHtml";

type Message = { type: "ready" } | { type: "cancel" } | { type: "report" };

export class RunPanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private readonly runs = new LatestRun();

  constructor(
    private readonly extension: vscode.Uri,
    private readonly cancel: (uri: string) => Thenable<unknown>,
  ) {}

  /** Opens the view, or brings it to the front; the editor keeps the focus. `uri`: of the program to show, if not the latest. */
  show(uri?: string): void {
    this.runs.choose(uri);
    const panel = this.panel ?? this.open();
    panel.reveal(panel.viewColumn ?? vscode.ViewColumn.Beside, true);
    void this.post();
  }

  live(run: LiveRun): void {
    if (this.runs.update(run)) {
      void this.post();
    }
  }

  /** After a restart of the server, which numbers its runs from the start. */
  lost(): void {
    this.runs.end();
    void this.post();
  }

  private async post(): Promise<void> {
    if (this.runs.shown !== undefined) {
      await this.panel?.webview.postMessage(this.runs.shown);
    }
  }

  private open(): vscode.WebviewPanel {
    const scripts = vscode.Uri.joinPath(this.extension, "dist");
    const panel = vscode.window.createWebviewPanel(
      "magpy.run",
      "MagPy: Run",
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true, enableCommandUris: false, localResourceRoots: [scripts] },
    );
    panel.iconPath = vscode.Uri.joinPath(this.extension, "images", "icon.png");
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    panel.webview.onDidReceiveMessage((message: Message) => {
      this.receive(message).catch((error: unknown) => {
        void vscode.window.showErrorMessage(`MagPy: ${error instanceof Error ? error.message : String(error)}`);
      });
    });
    panel.webview.html = runHtml({
      script: panel.webview.asWebviewUri(vscode.Uri.joinPath(scripts, "run.js")).toString(),
      source: panel.webview.cspSource,
      nonce: randomBytes(16).toString("base64url"),
    });
    this.panel = panel;
    return panel;
  }

  private async receive(message: Message): Promise<void> {
    const { shown } = this.runs;
    if (message.type === "ready") {
      await this.post(); // also when it was hidden and is shown again
    } else if (message.type === "cancel" && shown !== undefined) {
      await this.cancel(shown.uri);
    } else if (message.type === "report") {
      await vscode.commands.executeCommand("magpy.showReport");
    }
  }

  dispose(): void {
    this.panel?.dispose();
  }
}
