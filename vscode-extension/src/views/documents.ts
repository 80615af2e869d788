/** Guards, graphs, generated code and kernels as read-only documents, with links to the program's lines. */

import * as vscode from "vscode";
import { type CaptureAt, type KernelSection, type KernelsMissing, type KernelsResponse, type TextKind, type TextResponse, VIEWS } from "../protocol";
import type { Server } from "../server";
import { isOfKernels, nameOf, VIEW_SCHEME, type Wanted, wantedOf } from "./virtual";

type Content = Pick<TextResponse, "text" | "language" | "links"> & { kernels?: KernelSection[] };

export class ViewDocuments implements vscode.TextDocumentContentProvider, vscode.DocumentLinkProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly contents = new Map<string, Content>();
  private readonly registered: vscode.Disposable[];

  constructor(private readonly server: Server) {
    this.registered = [
      vscode.workspace.registerTextDocumentContentProvider(VIEW_SCHEME, this),
      vscode.languages.registerDocumentLinkProvider({ scheme: VIEW_SCHEME }, this),
      vscode.workspace.onDidCloseTextDocument((document) => this.contents.delete(document.uri.toString())),
    ];
  }

  /** Opens the document; throws the server's message if there is nothing to show. */
  async show(kind: TextKind, at: CaptureAt): Promise<void> {
    const response = await this.text({ ...at, kind });
    // A document opened from the tree shows a fixed capture; one opened by a command shows the latest.
    const [region = response.region] = response.title.split(" · ");
    const uri = vscode.Uri.from({ scheme: VIEW_SCHEME, ...nameOf({ ...at, run: response.run, region: response.region, kind }, region) });
    await this.open(uri, response.language, { preview: true });
  }

  /** Opens the code of kernels in an editor beside the program, which keeps the cursor. */
  async showBeside(wanted: Wanted, name: string, language: string): Promise<vscode.TextEditor> {
    const uri = vscode.Uri.from({ scheme: VIEW_SCHEME, ...nameOf(wanted, name) });
    const shown = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === uri.toString());
    const viewColumn = shown?.viewColumn ?? vscode.ViewColumn.Beside;
    return this.open(uri, language, { viewColumn, preview: true, preserveFocus: true });
  }

  private async open(uri: vscode.Uri, language: string, options: vscode.TextDocumentShowOptions): Promise<vscode.TextEditor> {
    this.changed.fire(uri); // it may be open with the content of an older run
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, language);
    return vscode.window.showTextDocument(document, options);
  }

  /** Updates open documents after a run has ended. */
  refresh(): void {
    for (const document of vscode.workspace.textDocuments) {
      if (document.uri.scheme === VIEW_SCHEME) {
        this.changed.fire(document.uri);
      }
    }
  }

  /** The kernels in a document; empty for any other document. */
  kernelsIn(document: vscode.TextDocument): readonly KernelSection[] {
    return this.contents.get(document.uri.toString())?.kernels ?? [];
  }

  /** Asks where the lines of the program are now, after they have moved. */
  async locateKernels(document: vscode.TextDocument): Promise<void> {
    const wanted = wantedOf(document.uri.query);
    const content = this.contents.get(document.uri.toString());
    if (wanted !== undefined && isOfKernels(wanted) && content?.kernels !== undefined) {
      content.kernels = (await this.kernels({ ...wanted, text: false })).kernels;
    }
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const wanted = wantedOf(uri.query);
    if (wanted === undefined) {
      return "# This is not a MagPy document.\n";
    }
    try {
      const content = isOfKernels(wanted) ? await this.kernels(wanted) : await this.text(wanted);
      this.contents.set(uri.toString(), content);
      return content.text;
    } catch (error) {
      this.contents.delete(uri.toString());
      return `# ${error instanceof Error ? error.message : String(error)}\n`;
    }
  }

  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    return (this.contents.get(document.uri.toString())?.links ?? []).map(({ line, start, end, place }) => {
      const uri = vscode.Uri.parse(place.uri);
      const target = uri.scheme === "file" ? uri.with({ fragment: `L${place.line + 1}` }) : uri; // a cell's own fragment names it
      const link = new vscode.DocumentLink(new vscode.Range(line, start, line, end), target);
      link.tooltip = "Go to the line";
      return link;
    });
  }

  private async text(wanted: Wanted): Promise<TextResponse> {
    return (await this.server.ready()).sendRequest<TextResponse>(VIEWS.text, wanted);
  }

  private async kernels({ kind, ...wanted }: Wanted & { text?: boolean }): Promise<KernelsResponse> {
    const client = await this.server.ready();
    const response = await client.sendRequest<KernelsResponse | KernelsMissing>(VIEWS.kernels, { ...wanted, code: kind });
    if (response.missing) {
      throw new Error("The last run has made no kernels for a device.");
    }
    return { ...response, kernels: response.kernels.map(withEditorsUris) };
  }

  dispose(): void {
    this.registered.forEach((one) => {
      one.dispose();
    });
    this.changed.dispose();
  }
}

/** URIs as the editor writes them, so that they can be compared. */
export function withEditorsUris(kernel: KernelSection): KernelSection {
  return { ...kernel, places: kernel.places.map((at) => ({ ...at, uri: vscode.Uri.parse(at.uri).toString() })) };
}
