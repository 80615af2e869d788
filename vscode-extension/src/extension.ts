/** Entry point: wires the server, the status bar, the output channel and the commands together. */

import * as fs from "node:fs";
import * as vscode from "vscode";
import { registerCommands, report } from "./commands";
import { Debounced } from "./debounce";
import { FirstMinutes, WORKS } from "./firstMinutes";
import type { Own } from "./installation";
import { isActive, type RunStatus, SERVER_COMMANDS } from "./protocol";
import { onSelectedPythonChange } from "./pythonExtension";
import { RunOnSave } from "./runOnSave";
import { Transcript } from "./runOutput";
import { RunTerminals } from "./runTerminal";
import { Server } from "./server";
import { registerTasks, saveForRun, Starter } from "./starting";
import { StatusBar } from "./statusBar";
import { Brackets } from "./views/brackets";
import { ViewDocuments } from "./views/documents";
import { GraphPanel } from "./views/graphPanel";
import { KernelViews } from "./views/kernels";
import { RunPanel } from "./views/runPanel";
import { RunTree } from "./views/tree";

/** Limits updates of the tree, since a run sends a notification at every step. */
const TREE_DELAY_MS = 300;

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  // The manifest declares the same; this covers windows that are restricted in another way.
  if (!vscode.workspace.isTrusted) {
    context.subscriptions.push(vscode.workspace.onDidGrantWorkspaceTrust(() => {
      begin(context);
    }));
    return;
  }
  begin(context);
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

function begin(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("MagPy Language Server", { log: true });
  const output = vscode.window.createOutputChannel("MagPy");
  const statusBar = new StatusBar();
  const transcript = new Transcript();
  const revealed = new Set<number>();
  const ended = new Set<number>();

  const started = new Server(log, {
    state: (state, problem) => {
      statusBar.serverState(state, problem);
      if (state !== "ready") {
        revealed.clear();
        ended.clear();
        transcript.forget();
        terminals.lost();
        runView.lost();
      }
      treeSoon.call(TREE_DELAY_MS);
    },
    status: (status) => {
      statusBar.run(status);
      append(output, transcript.status(status));
      const first = !revealed.has(status.runId);
      revealed.add(status.runId);
      const reveal = first && wantsOutput(status);
      terminals.status(status, reveal);
      if (reveal && status.mode === "check") {
        output.show(true);
      }
      treeSoon.call(TREE_DELAY_MS);
      if (status.state === "done") {
        void vscode.commands.executeCommand("setContext", WORKS, true);
      }
      if (!isActive(status.state) && !ended.has(status.runId)) {
        ended.add(status.runId);
        documents.refresh();
        void graphs.refresh();
        if (status.state === "failed") {
          void report(new Error(`MagPy: ${status.summary}`));
        }
      }
    },
    output: (chunk) => {
      append(output, transcript.output(chunk));
      terminals.output(chunk);
    },
    live: (run) => {
      runView.live(run);
    },
    notice: (message) => {
      void vscode.window.showWarningMessage(message);
    },
    save: async (argument, command) => {
      if (command === SERVER_COMMANDS.check) {
        starter.remember(argument);
      }
      await saveForRun(argument);
    },
  }, ownOf(context.extension), context.storageUri);
  const starter = new Starter(started, context.workspaceState);
  const onSave = new RunOnSave(starter, log);
  const brackets = new Brackets(context.extensionUri);
  const tree = new RunTree(started, log, (runs) => {
    brackets.show(runs);
  });
  const treeSoon = new Debounced(() => {
    tree.refresh();
  });
  const documents = new ViewDocuments(started);
  const graphs = new GraphPanel(started, context.extensionUri, (at, kind) => documents.show(kind, at));
  const kernels = new KernelViews(started, starter, documents);
  const cancel = async (uri: string): Promise<void> => {
    await started.running?.sendRequest("workspace/executeCommand", { command: SERVER_COMMANDS.cancel, arguments: [{ uri }] });
  };
  const terminals = new RunTerminals((uri) => {
    void cancel(uri);
  });
  const runView = new RunPanel(context.extensionUri, cancel);
  server = started;

  const start = (): void => {
    started.restartIfChanged().catch((error: unknown) => {
      log.error(error instanceof Error ? error.message : String(error));
      void report(error); // not only in the status bar, where nobody looks for a reason
    });
  };
  context.subscriptions.push(
    log,
    output,
    statusBar,
    onSave,
    brackets,
    tree,
    treeSoon,
    documents,
    graphs,
    kernels,
    terminals,
    runView,
    registerTasks(starter),
    ...registerCommands({
      server: started,
      starter,
      output,
      log,
      documents,
      graphs,
      kernels,
      firstMinutes: new FirstMinutes(started, starter),
      runView,
      clearRuns: () => {
        statusBar.clearRuns();
        tree.refresh();
      },
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("magpy.interpreter")) {
        start();
      }
    }),
  );
  onSelectedPythonChange(start).then(
    (subscription) => {
      if (subscription !== undefined) {
        context.subscriptions.push(subscription);
      }
    },
    (error: unknown) => {
      log.warn(`Changes of the Python extension's interpreter are not detected: ${String(error)}`);
    },
  );
  start();
}

/** The MagPy that the extension brings, in `bundled`. */
function ownOf(extension: vscode.Extension<unknown>): Own {
  const file = vscode.Uri.joinPath(extension.extensionUri, "bundled", "magpy.py").fsPath;
  const { version } = extension.packageJSON as { version: string };
  return { version, file: fs.existsSync(file) ? file : undefined };
}

function append(channel: vscode.OutputChannel, text: string): void {
  if (text !== "") {
    channel.append(text);
  }
}

function wantsOutput(status: RunStatus): boolean {
  const when = vscode.workspace.getConfiguration("magpy").get<string>("revealOutput", "onRunCompiled");
  return isActive(status.state) && (when === "always" || (when === "onRunCompiled" && status.mode === "compiled"));
}
