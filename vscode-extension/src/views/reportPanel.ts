/** The report's page (as `magpy-lsp check --html` writes it) in a webview. It has a content security policy of its own. */

import * as vscode from "vscode";
import { VIEWS } from "../protocol";
import type { Server } from "../server";

export async function showReport(server: Server, run: string | undefined): Promise<void> {
  const { html } = await (await server.ready()).sendRequest<{ html: string }>(VIEWS.page, { run });
  const panel = vscode.window.createWebviewPanel("magpy.report", "MagPy report", vscode.ViewColumn.Active, {
    enableScripts: true, // the page's own, by its hash: it filters the tables
    localResourceRoots: [],
  });
  panel.webview.html = html;
}
