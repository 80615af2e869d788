/** The webview that draws the operator graph or the RefGraph of a capture and jumps to a node's line. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { type CaptureAt, type Graph, type GraphKind, type Place, VIEWS } from "../protocol";
import type { Server } from "../server";
import { graphHtml } from "./graphHtml";

interface Wanted extends CaptureAt {
  kind: GraphKind;
}

type Message = { type: "ready" } | { type: "list" } | { type: "open"; place: Place } | { type: "want"; kind?: GraphKind; capture?: number };

export class GraphPanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private wanted: Wanted = { kind: "operators" };
  private latest: { type: "graph"; graph: Graph; nodes: readonly string[] } | { type: "problem"; text: string } | undefined;

  constructor(
    private readonly server: Server,
    private readonly extension: vscode.Uri,
    private readonly list: (at: CaptureAt, kind: GraphKind) => Promise<void>,
  ) {}

  /** Shows a graph with `nodes` selected; throws the server's message if there is none. */
  async show(wanted: Wanted, nodes: readonly string[] = []): Promise<void> {
    const graph = await this.request(wanted);
    this.wanted = { ...wanted, run: graph.run, region: graph.region };
    this.latest = { type: "graph", graph, nodes };
    const [region = ""] = graph.title.split(" · ");
    const panel = this.panel ?? this.open();
    panel.title = `${region}: ${graph.kind === "operators" ? "operator graph" : "reads and writes"}`;
    panel.reveal(panel.viewColumn ?? vscode.ViewColumn.Beside, false);
    await panel.webview.postMessage(this.latest);
  }

  /** Updates an open panel after a run has ended. */
  async refresh(): Promise<void> {
    const { panel } = this;
    if (panel === undefined) {
      return;
    }
    try {
      this.latest = { type: "graph", graph: await this.request({ ...this.wanted, capture: undefined }), nodes: [] };
    } catch (error) {
      this.latest = { type: "problem", text: error instanceof Error ? error.message : String(error) };
    }
    await panel.webview.postMessage(this.latest);
  }

  private async request(wanted: Wanted): Promise<Graph> {
    return (await this.server.ready()).sendRequest<Graph>(VIEWS.graph, wanted);
  }

  private open(): vscode.WebviewPanel {
    const scripts = vscode.Uri.joinPath(this.extension, "dist");
    const panel = vscode.window.createWebviewPanel("magpy.graph", "MagPy graph", vscode.ViewColumn.Beside, {
      enableScripts: true,
      enableCommandUris: false,
      localResourceRoots: [scripts],
    });
    panel.iconPath = vscode.Uri.joinPath(this.extension, "images", "icon.png");
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    panel.webview.onDidReceiveMessage((message: Message) => {
      this.receive(message).catch((error: unknown) => {
        void vscode.window.showErrorMessage(`MagPy: ${error instanceof Error ? error.message : String(error)}`);
      });
    });
    panel.webview.html = graphHtml({
      script: panel.webview.asWebviewUri(vscode.Uri.joinPath(scripts, "graph.js")).toString(),
      source: panel.webview.cspSource,
      nonce: randomBytes(16).toString("base64url"),
    });
    this.panel = panel;
    return panel;
  }

  private async receive(message: Message): Promise<void> {
    switch (message.type) {
      case "ready": // also when it was hidden and is shown again
        await this.panel?.webview.postMessage(this.latest);
        break;
      case "list":
        await this.list({ run: this.wanted.run, region: this.wanted.region, capture: this.wanted.capture }, this.wanted.kind);
        break;
      case "open":
        await goTo(message.place, this.panel?.viewColumn);
        break;
      case "want":
        await this.show({ ...this.wanted, kind: message.kind ?? this.wanted.kind, capture: message.capture ?? this.wanted.capture });
    }
  }

  dispose(): void {
    this.panel?.dispose();
  }
}

/** Puts the cursor on a line, in an editor next to the graph. */
async function goTo(place: Place, graph: vscode.ViewColumn | undefined): Promise<void> {
  const uri = vscode.Uri.parse(place.uri, true);
  if (uri.scheme === "vscode-notebook-cell") {
    await vscode.commands.executeCommand("vscode.open", uri);
    return;
  }
  if (uri.scheme !== "file") {
    throw new Error("a graph may only link to files");
  }
  const at = new vscode.Position(place.line, place.character);
  const shown = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === uri.toString());
  const column = shown?.viewColumn ?? (graph === vscode.ViewColumn.One ? vscode.ViewColumn.Two : vscode.ViewColumn.One);
  const editor = await vscode.window.showTextDocument(uri, { viewColumn: column, selection: new vscode.Range(at, at) });
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
