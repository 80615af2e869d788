/** Terminals of compiled runs: show the program's live output; Ctrl+C cancels. Key type: RunTerminals. */

import * as vscode from "vscode";
import { isActive, type RunOutput, type RunStatus } from "./protocol";
import { forTerminal, header } from "./runOutput";

const CTRL_C = "\u0003";

/** The terminal for the runs of one entrypoint. */
class RunTerminal implements vscode.Pseudoterminal {
  private readonly write = new vscode.EventEmitter<string>();
  readonly onDidWrite = this.write.event;
  private readonly closed = new vscode.EventEmitter<number>();
  readonly onDidClose = this.closed.event;
  private waiting: string[] | undefined = [];
  private run: RunStatus | undefined;

  constructor(
    private readonly program: string,
    private readonly cancel: (uri: string) => void,
    private readonly onClosed: () => void,
  ) {}

  open(): void {
    const waiting = this.waiting ?? [];
    this.waiting = undefined;
    waiting.forEach((text) => {
      this.write.fire(text);
    });
  }

  close(): void {
    this.stop();
    this.onClosed();
  }

  handleInput(data: string): void {
    if (data.includes(CTRL_C)) {
      this.stop();
    }
  }

  status(status: RunStatus): void {
    const known = this.run?.runId === status.runId ? this.run : undefined;
    this.run = status;
    if (known === undefined) {
      this.print(`\u001b[1m${header({ ...status, entrypoint: this.program })}\u001b[0m\n`);
    }
    if (!isActive(status.state) && (known === undefined || isActive(known.state))) {
      const color = status.state === "failed" ? 31 : status.state === "done" ? 32 : 33;
      this.print(`\u001b[${color}m${status.summary}\u001b[0m\n\n`);
    }
  }

  output(chunk: RunOutput): void {
    this.print(chunk.text);
  }

  /** Ends the run when the server has exited. */
  lost(): void {
    if (this.run !== undefined && isActive(this.run.state)) {
      this.print("\n\u001b[33mThe language server exited, which ended this run.\u001b[0m\n\n");
    }
    this.run = undefined;
  }

  private stop(): void {
    if (this.run !== undefined && isActive(this.run.state)) {
      this.cancel(this.run.uri);
    }
  }

  private print(text: string): void {
    const shown = forTerminal(text);
    if (this.waiting === undefined) {
      this.write.fire(shown);
    } else {
      this.waiting.push(shown);
    }
  }
}

/** One terminal per entrypoint of a compiled run, kept until it is closed. */
export class RunTerminals implements vscode.Disposable {
  private readonly byEntrypoint = new Map<string, { terminal: vscode.Terminal; pty: RunTerminal }>();
  private readonly seen = new Set<number>();

  constructor(private readonly cancel: (uri: string) => void) {}

  status(status: RunStatus, reveal: boolean): void {
    if (status.mode !== "compiled") {
      return;
    }
    let known = this.byEntrypoint.get(status.entrypoint);
    if (!this.seen.has(status.runId)) {
      this.seen.add(status.runId);
      if (known === undefined && isActive(status.state)) { // a run of the last session has nothing to say
        known = this.open(status);
      }
      if (reveal) {
        known?.terminal.show(true);
      }
    }
    known?.pty.status(status);
  }

  output(chunk: RunOutput): void {
    if (chunk.mode === "compiled") {
      this.byEntrypoint.get(chunk.entrypoint)?.pty.output(chunk);
    }
  }

  /** Resets after a restart of the server, which numbers its runs from the start. */
  lost(): void {
    this.seen.clear();
    this.byEntrypoint.forEach(({ pty }) => {
      pty.lost();
    });
  }

  private open({ entrypoint, uri }: RunStatus): { terminal: vscode.Terminal; pty: RunTerminal } {
    const isFile = vscode.Uri.parse(uri).fsPath === entrypoint;
    const program = isFile ? vscode.workspace.asRelativePath(vscode.Uri.parse(uri)) : entrypoint;
    const pty = new RunTerminal(program, this.cancel, () => this.byEntrypoint.delete(entrypoint));
    const terminal = vscode.window.createTerminal({ name: `MagPy: ${program}`, pty, iconPath: new vscode.ThemeIcon("rocket"), isTransient: true });
    const opened = { terminal, pty };
    this.byEntrypoint.set(entrypoint, opened);
    return opened;
  }

  dispose(): void {
    for (const { terminal } of [...this.byEntrypoint.values()]) {
      terminal.dispose();
    }
  }
}
