/** Guards, graphs and generated code as read-only documents, with links to the program's lines. */

import * as vscode from "vscode";
import { type CaptureAt, type TextAnswer, type TextKind, VIEWS } from "../protocol";
import type { Server } from "../server";
import { nameOf, VIEW_SCHEME, wantedOf } from "./virtual";

export class ViewDocuments implements vscode.TextDocumentContentProvider, vscode.DocumentLinkProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly links = new Map<string, TextAnswer["links"]>();
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
    const answer = await this.ask({ ...at, kind });
    // A document opened from the tree shows a fixed capture; one opened by a command shows the latest.
    const [region = answer.region] = answer.title.split(" · ");
    const uri = vscode.Uri.from({ scheme: VIEW_SCHEME, ...nameOf({ ...at, run: answer.run, region: answer.region, kind }, region) });
    this.changed.fire(uri); // it may be open with the content of an older run
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, answer.language);
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
      return "# This is no document of MagPy's.\n";
    }
    try {
      const answer = await this.ask(wanted);
      this.links.set(uri.toString(), answer.links);
      return answer.text;
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

  private async ask(params: CaptureAt & { kind: TextKind }): Promise<TextAnswer> {
    return (await this.server.ready()).sendRequest<TextAnswer>(VIEWS.text, params);
  }

  dispose(): void {
    this.registered.forEach((one) => {
      one.dispose();
    });
    this.changed.dispose();
  }
}
