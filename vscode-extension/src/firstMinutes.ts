/** The example, and `magpy-lsp init` and `doctor` as tasks in a terminal. Key type: FirstMinutes. */

import { execFile } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Server, Tool as CommandLine } from "./server";
import { requireTrust, type Starter } from "./starting";
import { type Tool, TOOLS } from "./tools";

/** Set when a program was checked, or the installation and nothing is missing: the walkthrough's first step is done. */
export const WORKS = "magpy.works";

export class FirstMinutes {
  constructor(
    private readonly server: Server,
    private readonly starter: Starter,
  ) {}

  /** Copies the example if it is not there, opens and checks it, and goes to what is found. */
  async tryExample(): Promise<void> {
    requireTrust();
    const folder = await chooseFolder();
    if (folder === undefined) {
      return;
    }
    const file = path.join(folder.uri.fsPath, TOOLS.demo.opens);
    if (!fs.existsSync(file)) {
      await copyExample(await this.server.tool(folder.uri), folder.uri.fsPath);
    }
    const uri = vscode.Uri.file(file);
    const editor = await vscode.window.showTextDocument(uri, { preview: false });
    await this.starter.startFile("check", uri);
    const [first] = vscode.languages.getDiagnostics(uri);
    if (first !== undefined) {
      editor.selection = new vscode.Selection(first.range.start, first.range.start);
      editor.revealRange(first.range, vscode.TextEditorRevealType.InCenter);
    }
  }

  /** Runs the tool in a folder of the workspace, then opens the file that it has written. */
  async run(tool: Exclude<Tool, "demo">): Promise<void> {
    requireTrust();
    const folder = await chooseFolder();
    if (folder === undefined) {
      return;
    }
    const options = tool === "init" ? await chooseWorkflow() : [];
    if (options === undefined) {
      return;
    }
    const { python, args } = await this.server.tool(folder.uri); // says what to do if the interpreter can't run it
    const { title, opens } = TOOLS[tool];
    const code = await end(await vscode.tasks.executeTask(taskOf(title, folder, python, [...args, tool, ...options])));
    if (tool === "doctor" && code === 0) {
      await vscode.commands.executeCommand("setContext", WORKS, true);
    }
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

/** The options of `init`; undefined: not at all. */
async function chooseWorkflow(): Promise<string[] | undefined> {
  const settings = { label: "Settings in pyproject.toml", options: ["--no-ci"] };
  const both = { label: "Settings, and a workflow in .github/workflows that checks every push", options: [] };
  return (await vscode.window.showQuickPick([settings, both], { title: "Set Up This Project: what to write" }))?.options;
}

function copyExample({ python, args }: CommandLine, cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(python, [...args, "demo", "--no-check"], { cwd }, (error, _, stderr) => {
      if (error === null) {
        resolve();
      } else {
        reject(new Error(stderr.trim() || error.message));
      }
    });
  });
}

/** Waits for the end of the task, and returns its exit code: its terminal shows what went wrong, if anything did. */
function end(execution: vscode.TaskExecution): Promise<number | undefined> {
  return new Promise((resolve) => {
    const subscription = vscode.tasks.onDidEndTaskProcess((event) => {
      if (event.execution === execution) {
        subscription.dispose();
        resolve(event.exitCode);
      }
    });
  });
}
