/** The extension's commands. The server's own (`magpy.check` ...) are registered by the language client. */

import * as vscode from "vscode";
import { codeOf } from "./findingCode";
import { CODES, type CodeInfo, type Mode, type RunStatus, SERVER_COMMANDS } from "./protocol";
import { InterpreterProblem, type Server } from "./server";

export const PAGE_SCHEME = "magpy-code";

export interface CommandContext {
  server: Server;
  output: vscode.OutputChannel;
  clearRuns(): void;
}

export function registerCommands(context: CommandContext): vscode.Disposable[] {
  const { server, output } = context;
  const pages = new CodePages();
  const commands: Record<string, (...args: never[]) => unknown> = {
    "magpy.checkFile": (resource?: vscode.Uri) => start(server, "check", resource),
    "magpy.runCompiledFile": (resource?: vscode.Uri) => start(server, "compiled", resource),
    "magpy.cancelRun": () => send(server, SERVER_COMMANDS.cancel, []),
    "magpy.clearFindings": async () => {
      await send(server, SERVER_COMMANDS.clear, []);
      context.clearRuns();
    },
    "magpy.restartServer": () => server.restart(),
    "magpy.showOutput": () => {
      output.show(true);
    },
    "magpy.explainCode": (code?: string) => explain(server, pages, code),
    "magpy.showMenu": showMenu,
  };
  const registered = Object.entries(commands).map(([id, run]) =>
    vscode.commands.registerCommand(id, async (...args: never[]) => {
      try {
        return await run(...args);
      } catch (error) {
        // Not awaited: a message box stays open until it is answered, a command must end.
        void report(error);
        return undefined;
      }
    }),
  );
  return [...registered, vscode.workspace.registerTextDocumentContentProvider(PAGE_SCHEME, pages)];
}

async function report(error: unknown): Promise<void> {
  const message = error instanceof Error ? error.message : String(error);
  const ways = error instanceof InterpreterProblem ? ["Choose Interpreter", "Show Output"] : ["Show Output"];
  const choice = await vscode.window.showErrorMessage(message, ...ways);
  if (choice === "Choose Interpreter") {
    await vscode.commands.executeCommand("workbench.action.openSettings", "magpy.interpreter");
  } else if (choice === "Show Output") {
    await vscode.commands.executeCommand("magpy.showOutput");
  }
}

async function start(server: Server, mode: Mode, resource?: vscode.Uri): Promise<RunStatus | undefined> {
  const uri = resource ?? shownPython()?.uri;
  if (uri === undefined) {
    throw new Error("Open the Python file to run first.");
  }
  const client = await server.ready();
  const argument = { uri: client.code2ProtocolConverter.asUri(uri) };
  await saveForRun(argument);
  const command = mode === "check" ? SERVER_COMMANDS.check : SERVER_COMMANDS.runCompiled;
  // The request itself, not the client's command: that one would show an error of its own beside ours.
  return client.sendRequest<RunStatus>("workspace/executeCommand", { command, arguments: [argument] });
}

/** The Python file in front: the active editor may be the output view. */
function shownPython(): vscode.TextDocument | undefined {
  const editors = [vscode.window.activeTextEditor, ...vscode.window.visibleTextEditors];
  const shown = (document: vscode.TextDocument): boolean => document.languageId === "python" && document.uri.scheme === "file";
  return editors.find((editor) => editor !== undefined && shown(editor.document))?.document;
}

async function send(server: Server, command: string, args: unknown[]): Promise<unknown> {
  await server.ready();
  return vscode.commands.executeCommand(command, ...args);
}

/** Save the file that is to run and the other Python files it may import. */
export async function saveForRun(argument: unknown): Promise<void> {
  const uri = typeof argument === "object" && argument !== null && "uri" in argument ? argument.uri : undefined;
  for (const document of vscode.workspace.textDocuments) {
    const wanted = document.languageId === "python" || document.uri.toString() === uri;
    if (wanted && document.isDirty && !document.isUntitled && !(await document.save())) {
      throw new Error(`${vscode.workspace.asRelativePath(document.uri)} could not be saved, so it was not run.`);
    }
  }
}

async function explain(server: Server, pages: CodePages, code?: string): Promise<void> {
  const client = await server.ready();
  const codes = await client.sendRequest<CodeInfo[]>(CODES);
  const chosen = code ?? codeAtCursor() ?? (await pick(codes));
  if (chosen === undefined) {
    return;
  }
  const info = codes.find((candidate) => candidate.code === chosen);
  if (info === undefined) {
    throw new Error(`There is no finding code ${chosen}.`);
  }
  await vscode.commands.executeCommand("markdown.showPreview", pages.put(info));
}

function codeAtCursor(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return undefined;
  }
  const here = vscode.languages
    .getDiagnostics(editor.document.uri)
    .filter((diagnostic) => diagnostic.range.contains(editor.selection.active) && codeOf(diagnostic) !== undefined)
    .sort((a, b) => a.severity - b.severity);
  return here[0] === undefined ? undefined : codeOf(here[0]);
}

async function pick(codes: readonly CodeInfo[]): Promise<string | undefined> {
  const items = codes.map((info) => ({ label: info.code, description: info.name, detail: info.title }));
  const chosen = await vscode.window.showQuickPick(items, {
    title: "Explain a finding code",
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return chosen?.label;
}

async function showMenu(): Promise<void> {
  const items = [
    ...(shownPython() !== undefined ? [item("checklist", "Check", "magpy.checkFile"), item("rocket", "Run Compiled", "magpy.runCompiledFile")] : []),
    item("stop-circle", "Cancel", "magpy.cancelRun"),
    item("output", "Show Output", "magpy.showOutput"),
    item("clear-all", "Clear Findings", "magpy.clearFindings"),
    item("question", "Explain Code", "magpy.explainCode"),
    item("debug-restart", "Restart Server", "magpy.restartServer"),
  ];
  const chosen = await vscode.window.showQuickPick(items, { title: "MagPy" });
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(chosen.command);
  }
}

function item(icon: string, label: string, command: string): vscode.QuickPickItem & { command: string } {
  return { label: `$(${icon}) ${label}`, command };
}

/** Read-only documents for the pages, shown by VS Code's Markdown preview. */
class CodePages implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();

  put(info: CodeInfo): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: PAGE_SCHEME, path: `/${info.code} ${info.name}.md` });
    this.texts.set(uri.toString(), info.page);
    return uri;
  }

  provideTextDocumentContent(uri: vscode.Uri): string | undefined {
    return this.texts.get(uri.toString());
  }
}
