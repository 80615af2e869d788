/** Starts programs: a file, a configured entrypoint, or a comparison of both engines. No other module runs user code. */

import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { argumentOf, compareArgs, merged } from "./entrypoints";
import { type Entrypoint, type Mode, type RunArgument, type RunStatus, SERVER_COMMANDS, VIEWS } from "./protocol";
import { type Server, UNTRUSTED } from "./server";

/** Every run passes this check, because the manifest's declaration alone can be overridden by a setting. */
export function requireTrust(): void {
  if (!vscode.workspace.isTrusted) {
    throw new Error(UNTRUSTED);
  }
}

/** A program to run, and its name. */
export interface Chosen {
  name: string;
  argument: RunArgument;
}

/** In tasks.json: `{ "type": "magpy", "compare": "train.py" }`. */
const TASK_TYPE = "magpy";
const SELECTED = "magpy.selectedEntrypoint";

let saving = 0;

/** Whether the current save is ours, before a run. */
export function isSavingForRun(): boolean {
  return saving > 0;
}

/** Saves the file to run and other Python files that it may import. */
export async function saveForRun(argument: unknown): Promise<void> {
  const uri = typeof argument === "object" && argument !== null && "uri" in argument ? argument.uri : undefined;
  saving += 1;
  try {
    for (const document of vscode.workspace.textDocuments) {
      if (document.uri.scheme !== "file") {
        continue; // a notebook's cells are saved with it
      }
      const wanted = document.languageId === "python" || document.uri.toString() === uri;
      if (wanted && document.isDirty && !document.isUntitled && !(await document.save())) {
        throw new Error(`${vscode.workspace.asRelativePath(document.uri)} could not be saved, so it was not run.`);
      }
    }
    for (const notebook of vscode.workspace.notebookDocuments) {
      if (notebook.uri.toString() === uri && notebook.isDirty && !(await notebook.save())) {
        throw new Error(`${vscode.workspace.asRelativePath(notebook.uri)} could not be saved, so it was not run.`);
      }
    }
  } finally {
    saving -= 1;
  }
}

/** The visible Python file: the active editor may be the output view. */
export function shownPython(): vscode.TextDocument | undefined {
  const editors = [vscode.window.activeTextEditor, ...vscode.window.visibleTextEditors];
  const shown = (document: vscode.TextDocument): boolean => document.languageId === "python" && document.uri.scheme === "file";
  return editors.find((editor) => editor !== undefined && shown(editor.document))?.document;
}

/** The active notebook: it runs as one script. */
function shownNotebook(): vscode.Uri | undefined {
  const shown = vscode.window.activeNotebookEditor?.notebook;
  return shown?.uri.scheme === "file" && shown.uri.path.endsWith(".ipynb") ? shown.uri : undefined;
}

export class Starter {
  constructor(
    private readonly server: Server,
    private readonly memory: vscode.Memento,
  ) {}

  /** The program checked last, by a command or a lens: if none is selected, a save checks it again. */
  last: RunArgument | undefined;

  remember(argument: unknown): void {
    if (typeof argument === "object" && argument !== null && "uri" in argument) {
      this.last = { ...(argument as RunArgument), wait: undefined };
    }
  }

  async start(mode: Mode, argument: RunArgument): Promise<RunStatus> {
    requireTrust();
    if (mode === "check") {
      this.remember(argument);
    }
    return this.send(mode === "check" ? SERVER_COMMANDS.check : SERVER_COMMANDS.runCompiled, argument);
  }

  private async send(command: string, argument: RunArgument): Promise<RunStatus> {
    requireTrust();
    const client = await this.server.ready();
    await saveForRun(argument);
    // Send the request directly: the client's command would show a second error message.
    return client.sendRequest<RunStatus>("workspace/executeCommand", { command, arguments: [argument] });
  }

  startFile(mode: Mode, resource?: vscode.Uri): Promise<RunStatus> {
    return this.start(mode, this.file(resource).argument);
  }

  /** The program for a command's argument. */
  private file(resource?: vscode.Uri): Chosen {
    // A notebook's toolbar passes an argument that is not a file's URI.
    const uri = (resource instanceof vscode.Uri ? resource : undefined) ?? shownNotebook() ?? shownPython()?.uri;
    if (uri === undefined) {
      throw new Error("Open the Python file to run first.");
    }
    return { name: path.basename(uri.fsPath), argument: { uri: uri.toString() } };
  }

  async checkEntrypoint(): Promise<RunStatus | undefined> {
    const chosen = await this.choose("Check an entrypoint");
    return chosen === undefined ? undefined : this.start("check", chosen.argument);
  }

  /** The entrypoint that is checked on save and listed first. */
  async selectEntrypoint(): Promise<void> {
    const chosen = await this.choose("Select this workspace's entrypoint");
    if (chosen !== undefined) {
      await this.memory.update(SELECTED, chosen);
      vscode.window.setStatusBarMessage(`MagPy: ${chosen.name} is selected`, 5_000);
    }
  }

  get selected(): Chosen | undefined {
    return this.memory.get<Chosen>(SELECTED);
  }

  /** Runs a program under MagPy and torch.compile: shows the findings of both, and a table at the end of the output. */
  async compare(resource?: vscode.Uri): Promise<RunStatus> {
    requireTrust();
    const chosen = resource !== undefined || shownPython() !== undefined ? this.file(resource) : this.selected;
    if (chosen === undefined) {
      throw new Error("Open the Python file to compare first, or select an entrypoint.");
    }
    return this.send(SERVER_COMMANDS.compare, chosen.argument);
  }

  /** The comparison as a task of tasks.json: only the table. */
  async compareTask({ name, argument }: Chosen, definition?: vscode.TaskDefinition): Promise<vscode.Task> {
    requireTrust();
    const uri = vscode.Uri.parse(argument.uri);
    const folder = vscode.workspace.getWorkspaceFolder(uri);
    const settings = vscode.workspace.getConfiguration("magpy", uri);
    const tool = await this.server.tool(uri);
    const line = compareArgs({ args: settings.get<string[]>("args", []), ...argument }, uri.fsPath, settings.get("backend", ""));
    const execution = new vscode.ProcessExecution(tool.python, [...tool.args, ...line], {
      cwd: argument.cwd ?? folder?.uri.fsPath ?? path.dirname(uri.fsPath),
      env: { ...settings.get<Record<string, string>>("env", {}), ...argument.env },
    });
    const scope = folder ?? vscode.TaskScope.Workspace;
    const task = new vscode.Task(definition ?? { type: TASK_TYPE, compare: uri.fsPath }, scope, `compare ${name} with torch.compile`, "MagPy", execution, []);
    task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, clear: true, panel: vscode.TaskPanelKind.Dedicated };
    return task;
  }

  private async choose(title: string): Promise<Chosen | undefined> {
    const shown = shownPython();
    const { selected } = this;
    const items = [
      ...(await this.configured()),
      ...(shown === undefined ? [] : [{ ...this.file(shown.uri), description: "the active file" }]),
    ].map((chosen) => ({
      label: chosen.name,
      description: chosen.description + (JSON.stringify(chosen.argument) === JSON.stringify(selected?.argument) ? " (selected)" : ""),
      detail: [chosen.argument.module ?? vscode.workspace.asRelativePath(vscode.Uri.parse(chosen.argument.uri)), ...(chosen.argument.args ?? [])].join(" "),
      chosen,
    }));
    if (items.length === 0) {
      throw new Error("No entrypoint is configured (magpy.entrypoints, or [[tool.magpy.entrypoints]]) and no Python file is open: Set Up This Project finds the programs.");
    }
    return (await vscode.window.showQuickPick(items, { title, matchOnDetail: true }))?.chosen;
  }

  /** The entrypoints of the settings and of pyproject.toml, folder by folder. */
  private async configured(): Promise<(Chosen & { description: string })[]> {
    const client = await this.server.ready();
    const found: (Chosen & { description: string })[] = [];
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      const own = vscode.workspace.getConfiguration("magpy", folder.uri).get<Entrypoint[]>("entrypoints", []);
      const request = client.sendRequest<Entrypoint[]>(VIEWS.entrypoints, { uri: folder.uri.toString() });
      const project = await request.catch((error: unknown): Entrypoint[] => {
        void vscode.window.showWarningMessage(`MagPy: ${error instanceof Error ? error.message : String(error)}`);
        return [];
      });
      const base = { folder: folder.uri.fsPath, home: os.homedir(), toUri: (file: string) => vscode.Uri.file(file).toString() };
      for (const entry of merged(own, project)) {
        const from = project.includes(entry) ? "pyproject.toml" : "settings";
        found.push({ name: entry.name, argument: argumentOf(entry, base), description: `${folder.name}, ${from}` });
      }
    }
    return found;
  }
}

export function registerTasks(starter: Starter): vscode.Disposable {
  return vscode.tasks.registerTaskProvider(TASK_TYPE, {
    provideTasks: () => [], // the comparable programs are unknown
    resolveTask: async ({ definition, scope }) => {
      const file: unknown = definition["compare"];
      if (typeof file !== "string" || !vscode.workspace.isTrusted) {
        return undefined;
      }
      const folder = typeof scope === "object" ? scope : vscode.workspace.workspaceFolders?.[0];
      const full = path.isAbsolute(file) || folder === undefined ? file : path.join(folder.uri.fsPath, file);
      return starter.compareTask({ name: path.basename(file), argument: { uri: vscode.Uri.file(full).toString() } }, definition);
    },
  });
}
