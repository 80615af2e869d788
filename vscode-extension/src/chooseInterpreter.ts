/** Chooses `magpy.interpreter` among the Pythons that are found. Key function: chooseInterpreter. */

import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import { candidates } from "./interpreter";

const ENTER = "Enter a path…";

/** Asks, and writes the setting for the folder, the workspace or, without one, the user. The server restarts by itself. */
export async function chooseInterpreter(): Promise<void> {
  const active = vscode.window.activeTextEditor?.document.uri;
  const folder = (active && vscode.workspace.getWorkspaceFolder(active)) ?? vscode.workspace.workspaceFolders?.[0];
  const config = vscode.workspace.getConfiguration("magpy", folder?.uri);
  const found = candidates({
    folder: folder?.uri.fsPath,
    platform: process.platform,
    env: process.env,
    configured: vscode.workspace.getConfiguration("python", folder?.uri).get("defaultInterpreterPath", ""),
    isFile: (file) => fs.existsSync(file),
  });
  const items: vscode.QuickPickItem[] = found.map(({ path: file, source }) => ({ label: file, description: source }));
  const title = "The Python of your programs: it needs PyTorch, and nothing of MagPy";
  const chosen = await vscode.window.showQuickPick([...items, { label: ENTER, description: "an interpreter" }], { title });
  const python = chosen?.label === ENTER ? await enter(folder?.uri.fsPath) : chosen?.label;
  if (python === undefined || python.trim() === "") {
    return;
  }
  const folders = vscode.workspace.workspaceFolders?.length ?? 0;
  const { Global, Workspace, WorkspaceFolder } = vscode.ConfigurationTarget;
  await config.update("interpreter", python, folders === 0 ? Global : folders === 1 ? Workspace : WorkspaceFolder);
}

function enter(folder: string | undefined): Thenable<string | undefined> {
  const value = folder === undefined ? "" : path.join(folder, ".venv", "bin", "python");
  return vscode.window.showInputBox({ title: "The path of a Python interpreter", value });
}
