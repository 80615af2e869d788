/** The report page of `magpy-lsp check --html` in a webview. The page has its own content security policy. */

import * as vscode from "vscode";
import { VIEWS } from "../protocol";
import type { Server } from "../server";

/** The window's theme: a webview only knows the system's. */
function theme(): "dark" | "light" {
  const { ColorThemeKind: kinds, window } = vscode;
  return [kinds.Dark, kinds.HighContrast].includes(window.activeColorTheme.kind) ? "dark" : "light";
}

export async function showReport(server: Server, run: string | undefined): Promise<void> {
  const { html } = await (await server.ready()).sendRequest<{ html: string }>(VIEWS.page, { run });
  const panel = vscode.window.createWebviewPanel("magpy.report", "MagPy report", vscode.ViewColumn.Active, {
    enableScripts: true, // the page's own, by its hash: it filters the tables
    localResourceRoots: [],
  });
  panel.webview.html = html.replace("<html", `<html data-theme="${theme()}"`); // the page's button changes it
}
