/** Guards, graphs and generated code as read-only documents, with links to the program's lines. */

import * as vscode from "vscode";
import { type CaptureAt, type TextKind, type TextResponse, VIEWS } from "../protocol";
import type { Server } from "../server";
import { nameOf, VIEW_SCHEME, wantedOf } from "./virtual";

export class ViewDocuments implements vscode.TextDocumentContentProvider, vscode.DocumentLinkProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly links = new Map<string, TextResponse["links"]>();
  private readonly registered: vscode.Disposable[];

  constructor(private readonly server: Server) {
    this.registered = [
      vscode.workspace.registerTextDocumentContentProvider(VIEW_SCHEME, this),
      vscode.languages.registerDocumentLinkProvider({ scheme: VIEW_SCHEME }, this),
      vscode.workspace.onDidCloseTextDocument((document) => this.links.delete(document.uri.toString())),
    ];
  }

  /** Opens the document; throws the server's message if there is nothing to show. */
  async show(kind: TextKind, at: CaptureAt): Promise<void> {
    const response = await this.request({ ...at, kind });
    // A document opened from the tree shows a fixed capture; one opened by a command shows the latest.
    const [region = response.region] = response.title.split(" · ");
    const uri = vscode.Uri.from({ scheme: VIEW_SCHEME, ...nameOf({ ...at, run: response.run, region: response.region, kind }, region) });
    this.changed.fire(uri); // it may be open with the content of an older run
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, response.language);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** Updates open documents after a run has ended. */
  refresh(): void {
    for (const document of vscode.workspace.textDocuments) {
      if (document.uri.scheme === VIEW_SCHEME) {
        this.changed.fire(document.uri);
      }
    }
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const wanted = wantedOf(uri.query);
    if (wanted === undefined) {
      return "# This is not a MagPy document.\n";
    }
    try {
      const response = await this.request(wanted);
      this.links.set(uri.toString(), response.links);
      return response.text;
    } catch (error) {
      this.links.delete(uri.toString());
      return `# ${error instanceof Error ? error.message : String(error)}\n`;
    }
  }

  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    return (this.links.get(document.uri.toString()) ?? []).map(({ line, start, end, place }) => {
      const uri = vscode.Uri.parse(place.uri);
      const target = uri.scheme === "file" ? uri.with({ fragment: `L${place.line + 1}` }) : uri; // a cell's own fragment names it
      const link = new vscode.DocumentLink(new vscode.Range(line, start, line, end), target);
      link.tooltip = "Go to the line";
      return link;
    });
  }

  private async request(params: CaptureAt & { kind: TextKind }): Promise<TextResponse> {
    return (await this.server.ready()).sendRequest<TextResponse>(VIEWS.text, params);
  }

  dispose(): void {
    this.registered.forEach((one) => {
      one.dispose();
    });
    this.changed.dispose();
  }
}
