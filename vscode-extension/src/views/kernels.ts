/** The Triton source and PTX of kernels beside the program. Moving the cursor in one of them marks the lines of the other. */

import * as vscode from "vscode";
import { Debounced } from "../debounce";
import { type KernelKind, type KernelsMissing, type KernelsResponse, VIEWS } from "../protocol";
import type { Server } from "../server";
import { shownPython, type Starter } from "../starting";
import { type ViewDocuments, withEditorsUris } from "./documents";
import { kernelAt, kernelsOf, linesIn, type SourceLines, sourceLines } from "./inStep";

/** After an edit: the server is told at once, but a user may type on. */
const MOVED_DELAY_MS = 300;

export class KernelViews implements vscode.Disposable {
  private readonly mark = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("editor.wordHighlightStrongBackground"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.wordHighlightStrongForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Center,
  });
  private readonly movedSoon = new Debounced(() => {
    void this.linesMoved();
  });
  private readonly listeners: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    private readonly starter: Starter,
    private readonly documents: ViewDocuments,
  ) {
    this.listeners = [
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        this.follow(textEditor);
      }),
      vscode.window.onDidChangeVisibleTextEditors((editors) => {
        if (this.shown().length === 0) {
          this.markLines(editors, () => []);
        }
      }),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document.uri.scheme === "file" && this.shown().length > 0) {
          this.movedSoon.call(MOVED_DELAY_MS);
        }
      }),
    ];
  }

  /** Shows the kernels of lines: of the argument, else of the cursor's line. If none were made, offers to make them. */
  async show(kind: KernelKind, about?: unknown): Promise<void> {
    const wanted = sourceLines(about) ?? cursorsLine();
    const response = await this.made(kind, wanted);
    if (response === undefined) {
      return;
    }
    const kernels = response.kernels.map(withEditorsUris);
    const chosen = kernelsOf(kernels, { ...wanted, uri: vscode.Uri.parse(wanted.uri).toString() });
    if (chosen.length === 0) {
      await this.request({ uri: wanted.uri, line: wanted.first, text: false }); // throws, and says which lines have some
      return;
    }
    const of = kind === "ptx" ? { uri: wanted.uri, line: wanted.first } : {};
    const name = kind === "ptx" ? `${response.label} line ${wanted.first + 1}` : response.label;
    const editor = await this.documents.showBeside({ kind, run: response.run, ...of }, name, response.language);
    this.markKernels(editor, chosen);
    if (wanted.region === undefined && wanted.first === wanted.last) {
      const uri = vscode.Uri.parse(wanted.uri).toString();
      this.markLines(vscode.window.visibleTextEditors, (other) => (other === uri ? [wanted.first] : []));
    }
  }

  /** The kernels, after a run for a device if there are none; undefined if the user wants no such run or it has failed. */
  private async made(kind: KernelKind, wanted: SourceLines): Promise<KernelsResponse | undefined> {
    // PTX is long, so it is that of one line; Triton is that of the whole run, in which the cursor can move on.
    const params = { uri: wanted.uri, code: kind, ...(kind === "ptx" ? { line: wanted.first } : {}) };
    const first = await this.request(params);
    if (!first.missing) {
      return first;
    }
    const titles = first.devices.map((device) => device.title);
    const question = "No kernels have been made yet. Check the program and compile its graphs for which device? (Seconds to minutes; no GPU is needed.)";
    const title = await vscode.window.showInformationMessage(question, ...titles);
    const target = first.devices.find((device) => device.title === title)?.target;
    if (target === undefined) {
      return undefined;
    }
    const status = await this.starter.start("check", { ...first.program, target });
    if (status.state !== "done") {
      return undefined; // how it has ended is shown already
    }
    const second = await this.request(params);
    if (second.missing) {
      throw new Error(`No kernels were made: ${status.summary}`);
    }
    return second;
  }

  private async request(params: object): Promise<KernelsResponse | KernelsMissing> {
    return (await this.server.ready()).sendRequest<KernelsResponse | KernelsMissing>(VIEWS.kernels, params);
  }

  /** The visible editors with kernels. */
  private shown(): vscode.TextEditor[] {
    return vscode.window.visibleTextEditors.filter((editor) => this.documents.kernelsIn(editor.document).length > 0);
  }

  /** The cursor has moved: marks what belongs to its line. */
  private follow(editor: vscode.TextEditor): void {
    const { line } = editor.selection.active;
    const kernels = this.documents.kernelsIn(editor.document);
    if (kernels.length > 0) {
      const kernel = kernelAt(kernels, line);
      editor.setDecorations(this.mark, kernel === undefined ? [] : [rangeOf(kernel.first, kernel.last)]);
      this.markLines(vscode.window.visibleTextEditors, (uri) => linesIn(kernel, uri));
    } else if (editor.document.uri.scheme === "file") {
      const uri = editor.document.uri.toString();
      const shown = this.shown().map((one) => ({ one, chosen: kernelsOf(this.documents.kernelsIn(one.document), { uri, first: line, last: line }) }));
      for (const { one, chosen } of shown) {
        this.markKernels(one, chosen);
      }
      const has = shown.some(({ chosen }) => chosen.length > 0);
      this.markLines(vscode.window.visibleTextEditors, (other) => (has && other === uri ? [line] : []));
    }
  }

  private markKernels(editor: vscode.TextEditor, chosen: readonly { first: number; last: number }[]): void {
    editor.setDecorations(this.mark, chosen.map(({ first, last }) => rangeOf(first, last)));
    const [first] = chosen;
    if (first !== undefined) {
      const inView = editor.visibleRanges.some((range) => range.contains(new vscode.Position(first.first, 0)));
      if (!inView) {
        editor.revealRange(rangeOf(first.first, first.last), vscode.TextEditorRevealType.AtTop);
      }
    }
  }

  /** Marks lines in the program's editors. */
  private markLines(editors: readonly vscode.TextEditor[], linesOf: (uri: string) => number[]): void {
    for (const editor of editors) {
      if (editor.document.uri.scheme !== "file") {
        continue;
      }
      const lines = linesOf(editor.document.uri.toString());
      editor.setDecorations(this.mark, lines.map((line) => rangeOf(line, line)));
      const [first] = lines;
      if (first !== undefined) {
        editor.revealRange(rangeOf(first, lines.at(-1) ?? first), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
      }
    }
  }

  private async linesMoved(): Promise<void> {
    try {
      await Promise.all(this.shown().map((editor) => this.documents.locateKernels(editor.document)));
    } catch {
      return; // the run is gone, and the document says so when it is shown again
    }
    const { activeTextEditor: editor } = vscode.window;
    if (editor !== undefined) {
      this.follow(editor);
    }
  }

  dispose(): void {
    [...this.listeners, this.movedSoon, this.mark].forEach((one) => {
      one.dispose();
    });
  }
}

function cursorsLine(): SourceLines {
  const document = shownPython();
  const editor = vscode.window.visibleTextEditors.find((one) => one.document === document);
  if (document === undefined || editor === undefined) {
    throw new Error("Put the cursor on a line of a Python file first.");
  }
  const { line } = editor.selection.active;
  return { uri: document.uri.toString(), first: line, last: line };
}

function rangeOf(first: number, last: number): vscode.Range {
  return new vscode.Range(first, 0, last, 0);
}
