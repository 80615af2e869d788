/** Entry point: wires the server, the status bar, the output channel and the commands together. */

import * as vscode from "vscode";
import { registerCommands, saveForRun } from "./commands";
import { isActive, type RunStatus } from "./protocol";
import { onSelectedPythonChange } from "./pythonExtension";
import { Transcript } from "./runOutput";
import { Server } from "./server";
import { StatusBar } from "./statusBar";

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  // The manifest says the same; this holds where a window is restricted in some other way.
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

  const started = new Server(log, {
    state: (state, problem) => {
      statusBar.serverState(state, problem);
    },
    status: (status) => {
      statusBar.run(status);
      append(output, transcript.status(status));
      if (!revealed.has(status.runId) && wantsOutput(status)) {
        revealed.add(status.runId);
        output.show(true);
      }
      if (status.state === "failed") {
        void tellFailure(status, output);
      }
    },
    output: (chunk) => {
      append(output, transcript.output(chunk));
    },
    save: saveForRun,
  });
  server = started;

  const restart = (): void => {
    started.restart().catch((error: unknown) => {
      log.error(error instanceof Error ? error.message : String(error));
    });
  };
  context.subscriptions.push(
    log,
    output,
    statusBar,
    ...registerCommands({
      server: started,
      output,
      clearRuns: () => {
        statusBar.clearRuns();
      },
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("magpy.interpreter")) {
        restart();
      }
    }),
  );
  onSelectedPythonChange(restart).then(
    (subscription) => {
      if (subscription !== undefined) {
        context.subscriptions.push(subscription);
      }
    },
    (error: unknown) => {
      log.warn(`The Python extension's selection is not followed: ${String(error)}`);
    },
  );
  restart();
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

async function tellFailure(status: RunStatus, output: vscode.OutputChannel): Promise<void> {
  const choice = await vscode.window.showErrorMessage(`MagPy: ${status.summary}`, "Show Output");
  if (choice === "Show Output") {
    output.show(true);
  }
}
