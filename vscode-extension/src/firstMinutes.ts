/** `magpy-lsp demo`, `init` and `doctor` from the editor, as tasks in a terminal. Key type: FirstMinutes. */

import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import { type Server } from "./server";
import { requireTrust } from "./starting";
import { type Tool, toolArgs, TOOLS } from "./tools";

export class FirstMinutes {
  constructor(private readonly server: Server) {}

  /** Runs the tool in a folder of the workspace, then opens the file that it has written. */
  async run(tool: Tool): Promise<void> {
    requireTrust();
    const folder = await chooseFolder();
    if (folder === undefined) {
      return;
    }
    await this.server.ready(); // says what to do if MagPy is not installed
    const python = (await this.server.interpreter(folder.uri)).path;
    const { title, opens } = TOOLS[tool];
    await end(await vscode.tasks.executeTask(taskOf(title, folder, python, toolArgs(tool))));
    const file = opens === undefined ? undefined : path.join(folder.uri.fsPath, opens);
    if (file !== undefined && fs.existsSync(file)) {
      await vscode.window.showTextDocument(vscode.Uri.file(file), { preview: false });
    }
  }
}

async function chooseFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 0) {
    throw new Error("Open the folder of your project first (File: Open Folder…).");
  }
  return folders.length === 1 ? folders[0] : vscode.window.showWorkspaceFolderPick();
}

function taskOf(title: string, folder: vscode.WorkspaceFolder, python: string, args: string[]): vscode.Task {
  const execution = new vscode.ProcessExecution(python, args, { cwd: folder.uri.fsPath });
  const task = new vscode.Task({ type: "process" }, folder, title, "MagPy", execution, []);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, clear: true, panel: vscode.TaskPanelKind.Dedicated };
  return task;
}

/** Waits for the end of the task: its terminal shows what went wrong, if anything did. */
function end(execution: vscode.TaskExecution): Promise<void> {
  return new Promise((resolve) => {
    const subscription = vscode.tasks.onDidEndTask((event) => {
      if (event.execution === execution) {
        subscription.dispose();
        resolve();
      }
    });
  });
}
