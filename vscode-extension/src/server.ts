/** The lifetime of the language server: find, probe, start, restart, stop. */

import { execFile } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as vscode from "vscode";
import {
  CloseAction,
  type ConfigurationParams,
  ErrorAction,
  type Executable,
  type FeatureState,
  LanguageClient,
  type LanguageClientOptions,
  type StaticFeature,
} from "vscode-languageclient/node";
import { type Installation, installationOf, type Own, type Probe, PROBE } from "./installation";
import { findInterpreter, type Interpreter } from "./interpreter";
import { LIVE, type LiveRun, OUTPUT, type RunOutput, type RunStatus, SERVER_COMMANDS, STATUS } from "./protocol";
import { selectedPython } from "./pythonExtension";
import { LatestQueue } from "./queue";
import type { ServerState } from "./statusText";

export const UNTRUSTED = "MagPy runs your program, so it works only in trusted workspaces.";

const PROBE_TIMEOUT_MS = 20_000;
const CRASHES_ALLOWED = 3;

/** The commands that start a program. */
const RUNNING: readonly string[] = [SERVER_COMMANDS.check, SERVER_COMMANDS.runCompiled, SERVER_COMMANDS.compare];

/** The server does not start. The message says why; its log may say more. */
export class ServerProblem extends Error {}

/** The interpreter can't run the server. The message says what to do. */
export class InterpreterProblem extends ServerProblem {}

/** How `magpy-lsp` is started: `python`, and its arguments before the command. */
export interface Tool {
  python: string;
  args: string[];
}

export interface ServerEvents {
  state(state: ServerState, problem?: string): void;
  status(status: RunStatus): void;
  output(output: RunOutput): void;
  live(run: LiveRun): void;
  /** Something that the user should know, although the server works. */
  notice(message: string): void;
  /** Called before a run to save the editor's text to disk. */
  save(argument: unknown, command: string): Promise<void>;
}

/** Announces that the client shows failures of runs from `magpy/status`, so the server sends no messages for them, and how
 * compiled runs are going from `magpy/live`. */
const statusFeature: StaticFeature = {
  fillClientCapabilities: (capabilities) => {
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), magpyStatus: true, magpyLive: true };
  },
  initialize: () => undefined,
  getState: (): FeatureState => ({ kind: "static" }),
  clear: () => undefined,
};

export class Server {
  private client: LanguageClient | undefined;
  private readonly queue = new LatestQueue();
  private crashes = 0;
  /** What the server was started for, and the interpreter that it got. */
  private started: { resource: vscode.Uri | undefined; path: string } | undefined;

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly events: ServerEvents,
    private readonly own: Own,
    /** The folder of this workspace's last runs; undefined without a workspace. */
    private readonly storage: vscode.Uri | undefined,
  ) {}

  /** The running client, if any; does not start one. */
  get running(): LanguageClient | undefined {
    return this.client;
  }

  /** The running client; starts it if necessary. Throws an error with a message for the user if that fails. */
  async ready(): Promise<LanguageClient> {
    if (this.client === undefined) {
      await this.restart();
    }
    if (this.client === undefined) {
      throw new Error("The MagPy language server is not running.");
    }
    return this.client;
  }

  /** Restarts the server. Several calls during a restart cause only one more. */
  restart(): Promise<void> {
    this.crashes = 0;
    return this.queue.run(async () => {
      await this.stopClient();
      await this.startClient();
    });
  }

  /** Restarts the server if its own interpreter is another one now. Programs get theirs when they start. */
  async restartIfChanged(): Promise<void> {
    const { started } = this;
    const same = this.client !== undefined && started !== undefined && (await this.interpreter(started.resource)).path === started.path;
    if (!same) {
      await this.restart();
    }
  }

  stop(): Promise<void> {
    return this.queue.run(() => this.stopClient());
  }

  async interpreter(resource: vscode.Uri | undefined): Promise<Interpreter> {
    const folder = (resource && vscode.workspace.getWorkspaceFolder(resource)) ?? vscode.workspace.workspaceFolders?.[0];
    return findInterpreter({
      setting: vscode.workspace.getConfiguration("magpy", resource ?? folder?.uri).get("interpreter", ""),
      folder: folder?.uri.fsPath,
      home: os.homedir(),
      platform: process.platform,
      isFile: (file) => fs.existsSync(file),
      selected: () => selectedPython(resource ?? folder?.uri, this.log),
    });
  }

  /** The command line, for programs of `resource`. Throws an InterpreterProblem. */
  async tool(resource: vscode.Uri | undefined): Promise<Tool> {
    const interpreter = await this.interpreter(resource);
    return { python: interpreter.path, args: (await this.installation(interpreter)).cli };
  }

  private async installation(interpreter: Interpreter): Promise<Installation> {
    const found = installationOf(interpreter, await probe(interpreter.path), this.own);
    if ("problem" in found) {
      throw new InterpreterProblem(found.problem);
    }
    return found;
  }

  private async startClient(): Promise<void> {
    if (!vscode.workspace.isTrusted) {
      throw new Error(UNTRUSTED);
    }
    this.events.state("starting");
    const resource = vscode.window.activeTextEditor?.document.uri;
    const interpreter = await this.interpreter(resource);
    this.started = { resource, path: interpreter.path };
    let installation: Installation;
    try {
      installation = await this.installation(interpreter);
    } catch (error) {
      this.events.state("failed", error instanceof Error ? error.message : String(error));
      throw error;
    }
    if (installation.notice !== undefined) {
      this.log.warn(installation.notice);
      this.events.notice(installation.notice);
    }
    const run: Executable = { command: interpreter.path, args: installation.server };
    this.log.info(`Starting ${run.command} ${installation.server.join(" ")} (interpreter from ${interpreter.source}, MagPy of the ${installation.source})`);
    const client = new LanguageClient("magpy", "MagPy", run, this.options());
    client.registerFeature(statusFeature);
    client.onNotification(STATUS, (status: RunStatus) => {
      this.events.status(status);
    });
    client.onNotification(OUTPUT, (output: RunOutput) => {
      this.events.output(output);
    });
    client.onNotification(LIVE, (run: LiveRun) => {
      this.events.live(run);
    });
    try {
      await client.start();
    } catch (error) {
      const reason = `The MagPy language server did not start: ${error instanceof Error ? error.message : String(error)}`;
      this.events.state("failed", reason);
      throw new ServerProblem(reason, { cause: error });
    }
    this.client = client;
    this.events.state("ready");
  }

  private async stopClient(): Promise<void> {
    const { client } = this;
    this.client = undefined;
    if (client !== undefined) {
      this.events.state("stopped");
      await client.dispose();
    }
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [
        { scheme: "file", language: "python" },
        { notebook: { scheme: "file", notebookType: "jupyter-notebook" }, language: "python" },
        { scheme: "file", pattern: "**/pyproject.toml" }, // for diagnostics of its table
      ],
      initializationOptions: { trusted: vscode.workspace.isTrusted, storage: this.storage?.fsPath },
      outputChannel: this.log,
      markdown: { isTrusted: { enabledCommands: ["magpy.showTriton"] } }, // the link in a hover over a line with kernels
      middleware: {
        executeCommand: async (command, args: unknown[], next) => {
          if (RUNNING.includes(command)) {
            if (!vscode.workspace.isTrusted) {
              throw new Error(UNTRUSTED);
            }
            await this.events.save(args[0], command);
          }
          return (await next(command, args)) as unknown;
        },
        workspace: {
          // The server uses the same interpreter for a file as this window.
          configuration: async (params: ConfigurationParams, token, next) => {
            const responses = await next(params, token);
            if (!Array.isArray(responses)) {
              return responses;
            }
            return Promise.all(
              params.items.map(async (item, index) => {
                const response: unknown = responses[index];
                if (item.section !== "magpy" || typeof response !== "object" || response === null) {
                  return response;
                }
                const resource = item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri);
                return { ...response, interpreter: (await this.interpreter(resource)).path };
              }),
            );
          },
        },
      },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue }),
        closed: () => {
          this.crashes += 1;
          this.events.state("stopped");
          if (this.crashes <= CRASHES_ALLOWED) {
            this.log.error("The language server exited unexpectedly; restarting it.");
            this.events.state("starting");
            return { action: CloseAction.Restart, handled: true };
          }
          const problem = `The MagPy language server crashed ${this.crashes} times; see its log.`;
          this.client = undefined;
          this.events.state("failed", problem);
          return { action: CloseAction.DoNotRestart, message: problem };
        },
      },
    };
  }
}

function probe(command: string): Promise<Probe> {
  return new Promise((resolve) => {
    execFile(command, ["-c", PROBE], { timeout: PROBE_TIMEOUT_MS }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : undefined;
      resolve({ code, stdout, stderr: stderr.trim() === "" && error !== null ? error.message : stderr });
    });
  });
}
