/** The MagPy tree: entrypoint, region, capture, and their findings. */

import * as vscode from "vscode";
import { type TreeRun, VIEWS } from "../protocol";
import type { Server } from "../server";
import { type Item, itemsOf } from "./treeItems";

export const TREE_VIEW = "magpy.runs";
/** The context key that is set while there is a run to inspect. */
const HAS_RUNS = "magpy.hasRuns";

export class RunTree implements vscode.TreeDataProvider<Item>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private items: Item[] = [];
  private readonly view: vscode.TreeView<Item>;

  /** `onRuns` gets the runs each time that they are shown. */
  constructor(
    private readonly server: Server,
    private readonly log: vscode.LogOutputChannel,
    private readonly onRuns: (runs: readonly TreeRun[]) => void,
  ) {
    this.view = vscode.window.createTreeView(TREE_VIEW, { treeDataProvider: this, showCollapseAll: true });
    this.view.onDidChangeVisibility(() => {
      this.refresh(); // relative times have changed
    });
  }

  /** Requests the runs from the server. If that fails, the tree is unchanged. */
  refresh(): void {
    const client = this.server.running;
    if (client === undefined) {
      this.show([]);
      return;
    }
    client.sendRequest<TreeRun[]>(VIEWS.runs, {}).then(
      (runs) => {
        this.show(runs);
      },
      (error: unknown) => {
        this.log.warn(`The server did not return its runs: ${String(error)}`);
      },
    );
  }

  private show(runs: readonly TreeRun[]): void {
    this.items = itemsOf(runs, Date.now(), (uri) => vscode.workspace.asRelativePath(vscode.Uri.parse(uri)));
    void vscode.commands.executeCommand("setContext", HAS_RUNS, runs.length > 0);
    this.changed.fire(undefined);
    this.onRuns(runs);
  }

  getChildren(item?: Item): Item[] {
    return item === undefined ? this.items : (item.children ?? []);
  }

  getTreeItem(item: Item): vscode.TreeItem {
    const { Collapsed, Expanded, None } = vscode.TreeItemCollapsibleState;
    const state = item.children === undefined || item.children.length === 0 ? None : item.expanded ? Expanded : Collapsed;
    const shown = new vscode.TreeItem(item.label, state);
    shown.id = item.id;
    shown.description = item.detail;
    shown.tooltip = item.tooltip;
    shown.iconPath = new vscode.ThemeIcon(item.icon);
    shown.contextValue = item.context;
    if (item.command !== undefined) {
      shown.command = { command: item.command, title: item.label, arguments: [item.at] };
    } else if (item.place) {
      const { uri, line, character } = item.place;
      const at = new vscode.Position(line, character);
      const options: vscode.TextDocumentShowOptions = { selection: new vscode.Range(at, at), preserveFocus: true };
      shown.command = { command: "vscode.open", title: "Go to line", arguments: [vscode.Uri.parse(uri), options] };
    }
    return shown;
  }

  dispose(): void {
    this.view.dispose();
    this.changed.dispose();
  }
}
