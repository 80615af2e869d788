/** Check on save: only if `magpy.runOnSave` is on, and only programs that the user selected or started before. */

import * as vscode from "vscode";
import { Debounced } from "./debounce";
import { isSavingForRun, type Starter } from "./starting";

export class RunOnSave implements vscode.Disposable {
  private readonly debounced: Debounced;
  private readonly subscription: vscode.Disposable;

  constructor(starter: Starter, log: vscode.LogOutputChannel) {
    this.debounced = new Debounced(() => {
      const argument = starter.selected?.argument ?? starter.last;
      if (argument !== undefined) {
        starter.start("check", argument).catch((error: unknown) => {
          log.error(`Check on save: ${error instanceof Error ? error.message : String(error)}`);
        });
      }
    });
    this.subscription = vscode.workspace.onDidSaveTextDocument((document) => {
      if (document.languageId !== "python" || isSavingForRun() || !vscode.workspace.isTrusted) {
        return;
      }
      const settings = vscode.workspace.getConfiguration("magpy", document.uri);
      if (settings.get<boolean>("runOnSave", false)) {
        this.debounced.call(settings.get<number>("runOnSaveDelay", 1_000));
      }
    });
  }

  dispose(): void {
    this.subscription.dispose();
    this.debounced.dispose();
  }
}
