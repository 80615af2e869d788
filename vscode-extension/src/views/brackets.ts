/** Brackets in the gutter of editors, around statements that run as one graph. */

import * as vscode from "vscode";
import type { TreeRun } from "../protocol";
import { bracketsOf, type Lines } from "./bracketRanges";

const SHAPES = ["first", "between", "last", "only"] as const;
type Shape = (typeof SHAPES)[number];

export class Brackets implements vscode.Disposable {
  private found = new Map<string, Lines[]>();
  private readonly types: ReadonlyMap<Shape, vscode.TextEditorDecorationType>;
  private readonly listener = vscode.window.onDidChangeVisibleTextEditors(() => {
    this.draw();
  });

  constructor(extension: vscode.Uri) {
    const typeOf = (shape: Shape): vscode.TextEditorDecorationType =>
      vscode.window.createTextEditorDecorationType({
        gutterIconPath: vscode.Uri.joinPath(extension, "images", `bracket-${shape}.svg`),
        gutterIconSize: "contain",
        rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
      });
    this.types = new Map(SHAPES.map((shape) => [shape, typeOf(shape)]));
  }

  show(runs: readonly TreeRun[]): void {
    this.found = new Map([...bracketsOf(runs)].map(([uri, lines]) => [vscode.Uri.parse(uri).toString(), lines]));
    this.draw();
  }

  private draw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const lines = this.found.get(editor.document.uri.toString()) ?? [];
      for (const [shape, type] of this.types) {
        editor.setDecorations(type, linesOf(shape, lines).map((line) => new vscode.Range(line, 0, line, 0)));
      }
    }
  }

  dispose(): void {
    this.listener.dispose();
    for (const type of this.types.values()) {
      type.dispose();
    }
  }
}

function linesOf(shape: Shape, brackets: readonly Lines[]): number[] {
  return brackets.flatMap(({ first, last }) => {
    if (first === last) {
      return shape === "only" ? [first] : [];
    }
    switch (shape) {
      case "first":
        return [first];
      case "last":
        return [last];
      case "between":
        return Array.from({ length: last - first - 1 }, (_, i) => first + 1 + i);
      case "only":
        return [];
    }
  });
}
