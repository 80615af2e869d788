/** The extension's commands. The server's own (`magpy.check` ...) are registered by the language client. */

import * as vscode from "vscode";
import { chooseInterpreter } from "./chooseInterpreter";
import { codeOf } from "./findingCode";
import type { FirstMinutes } from "./firstMinutes";
import { type CaptureAt, CODES, type CodeInfo, type NodesOfLine, SERVER_COMMANDS, VIEWS, type WhyNot } from "./protocol";
import { InterpreterProblem, type Server, ServerProblem } from "./server";
import { shownPython, type Starter } from "./starting";
import { TOOLS } from "./tools";
import type { ViewDocuments } from "./views/documents";
import type { GraphPanel } from "./views/graphPanel";
import type { KernelViews } from "./views/kernels";
import { showReport } from "./views/reportPanel";
import type { RunPanel } from "./views/runPanel";
import { captureAt } from "./views/virtual";

export const PAGE_SCHEME = "magpy-code";

export interface CommandContext {
  server: Server;
  starter: Starter;
  output: vscode.OutputChannel;
  log: vscode.OutputChannel;
  documents: ViewDocuments;
  graphs: GraphPanel;
  kernels: KernelViews;
  firstMinutes: FirstMinutes;
  runView: RunPanel;
  clearRuns(): void;
}

export function registerCommands(context: CommandContext): vscode.Disposable[] {
  const { server, starter, output, documents, graphs, kernels, firstMinutes, runView } = context;
  const pages = new CodePages();
  const commands: Record<string, (...args: never[]) => unknown> = {
    "magpy.checkFile": (resource?: vscode.Uri) => starter.startFile("check", resource),
    "magpy.checkEntrypoint": () => starter.checkEntrypoint(),
    "magpy.selectEntrypoint": () => starter.selectEntrypoint(),
    "magpy.runCompiledFile": (resource?: vscode.Uri) => starter.startFile("compiled", resource),
    "magpy.compareEngines": (resource?: vscode.Uri) => starter.compare(resource),
    "magpy.showOperatorGraph": (about?: unknown) => graphs.show({ ...captureAt(about), kind: "operators" }),
    "magpy.showRefGraph": (about?: unknown) => graphs.show({ ...captureAt(about), kind: "references" }),
    "magpy.showGuards": (about?: unknown) => documents.show("guards", captureAt(about)),
    "magpy.showGuardCode": (about?: unknown) => documents.show("guardCode", captureAt(about)),
    "magpy.showReplayCode": (about?: unknown) => documents.show("replayCode", captureAt(about)),
    "magpy.showGeneratedCode": (about?: unknown) => documents.show("generatedCode", captureAt(about)),
    "magpy.showOperators": (about?: unknown) => documents.show("operators", captureAt(about)),
    "magpy.showReport": (about?: unknown) => showReport(server, captureAt(about).run),
    "magpy.showRunView": (about?: { uri?: string }) => {
      runView.show(about?.uri);
    },
    "magpy.showNodesOfLine": () => showNodesOfLine(server, graphs),
    "magpy.showTriton": (about?: unknown) => kernels.show("triton", about),
    "magpy.showPtx": (about?: unknown) => kernels.show("ptx", about),
    [TOOLS.demo.command]: () => firstMinutes.tryExample(),
    [TOOLS.init.command]: () => firstMinutes.run("init"),
    [TOOLS.doctor.command]: () => firstMinutes.run("doctor"),
    "magpy.chooseInterpreter": chooseInterpreter,
    "magpy.cancelRun": () => send(server, SERVER_COMMANDS.cancel, []),
    "magpy.clearFindings": async () => {
      await send(server, SERVER_COMMANDS.clear, []);
      context.clearRuns();
    },
    "magpy.restartServer": () => server.restart(),
    "magpy.showOutput": () => {
      output.show(true);
    },
    "magpy.showLog": () => {
      context.log.show(true);
    },
    "magpy.showWhyNot": (region?: unknown) => showWhyNot(server, pages, region),
    "magpy.explainCode": (code?: string) => explain(server, pages, code),
    "magpy.showMenu": showMenu,
  };
  const registered = Object.entries(commands).map(([id, run]) =>
    vscode.commands.registerCommand(id, async (...args: never[]) => {
      try {
        return await run(...args);
      } catch (error) {
        // Not awaited: a message stays open until the user responds, but the command must end.
        void report(error);
        return undefined;
      }
    }),
  );
  return [...registered, vscode.workspace.registerTextDocumentContentProvider(PAGE_SCHEME, pages)];
}

/** What the buttons of messages do. */
const ACTIONS = { "Choose Interpreter": "magpy.chooseInterpreter", "Show Log": "magpy.showLog", "Show Output": "magpy.showOutput" } as const;

/** Shows an error message, with buttons. */
export async function report(error: unknown): Promise<void> {
  const message = error instanceof Error ? error.message : String(error);
  const choose = error instanceof InterpreterProblem || message.includes("magpy.interpreter");
  const show = error instanceof ServerProblem ? "Show Log" : "Show Output";
  const choice = await vscode.window.showErrorMessage(message, ...(choose ? (["Choose Interpreter"] as const) : []), show);
  if (choice !== undefined) {
    await vscode.commands.executeCommand(ACTIONS[choice]);
  }
}

async function send(server: Server, command: string, args: unknown[]): Promise<unknown> {
  await server.ready();
  return vscode.commands.executeCommand(command, ...args);
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
    throw new Error(`${chosen} is not a finding code.`);
  }
  await vscode.commands.executeCommand("markdown.showPreview", pages.put(`${info.code} ${info.name}`, info.page));
}

/** Why a region is not compiled; without its id, all of the last run. */
async function showWhyNot(server: Server, pages: CodePages, region?: unknown): Promise<void> {
  const client = await server.ready();
  const { name, page } = await client.sendRequest<WhyNot>(VIEWS.whyNot, typeof region === "string" ? { region } : {});
  await vscode.commands.executeCommand("markdown.showPreview", pages.put(`Why ${name} is not compiled`, page));
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

/** Source to graph: the nodes of the cursor's line, in the newest capture that has any. */
async function showNodesOfLine(server: Server, graphs: GraphPanel): Promise<void> {
  const document = shownPython();
  const editor = vscode.window.visibleTextEditors.find((one) => one.document === document);
  if (document === undefined || editor === undefined) {
    throw new Error("Put the cursor on a line of a Python file first.");
  }
  const { line } = editor.selection.active;
  const client = await server.ready();
  const uri = client.code2ProtocolConverter.asUri(document.uri);
  const [found] = await client.sendRequest<NodesOfLine[]>(VIEWS.nodes, { uri, line });
  if (found === undefined) {
    throw new Error(`Line ${line + 1} has no operation in a captured graph of the last run.`);
  }
  const at: CaptureAt = { run: found.run, region: found.region, capture: found.capture };
  await graphs.show({ ...at, kind: "operators" }, found.nodes);
}

async function showMenu(): Promise<void> {
  const file = shownPython() !== undefined;
  const items = [
    ...(file ? [item("checklist", "Check This File", "magpy.checkFile"), item("rocket", "Run Compiled", "magpy.runCompiledFile")] : []),
    item("list-selection", "Check Entrypoint…", "magpy.checkEntrypoint"),
    ...(file ? [item("git-compare", "Compare with torch.compile", "magpy.compareEngines")] : []),
    item("stop-circle", "Cancel", "magpy.cancelRun"),
    item("type-hierarchy", "Show Operator Graph", "magpy.showOperatorGraph"),
    item("shield", "Show Guards", "magpy.showGuards"),
    item("graph", "Show Report", "magpy.showReport"),
    item("pulse", "Show Run View", "magpy.showRunView"),
    item("output", "Show Output", "magpy.showOutput"),
    item("clear-all", "Clear Findings", "magpy.clearFindings"),
    item("question", "Why Is This Not Compiled?", "magpy.showWhyNot"),
    item("question", "Explain Code", "magpy.explainCode"),
    item("target", "Select Entrypoint", "magpy.selectEntrypoint"),
    item("gear", "Set Up This Project", TOOLS.init.command),
    item("pulse", "Check the Installation", TOOLS.doctor.command),
    item("symbol-namespace", "Choose Interpreter", "magpy.chooseInterpreter"),
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

/** Read-only pages, shown by VS Code's Markdown preview: of finding codes, and why something is not compiled. */
class CodePages implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();

  put(name: string, page: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: PAGE_SCHEME, path: `/${name.replace(/[/\\]/g, "-")}.md` });
    this.texts.set(uri.toString(), page);
    return uri;
  }

  provideTextDocumentContent(uri: vscode.Uri): string | undefined {
    return this.texts.get(uri.toString());
  }
}
