/** Run headers and program output as the lines of an output channel. Pure. */

import { isActive, type RunOutput, type RunStatus } from "./protocol";

/** Escape sequences for colors and cursor movements, which an output channel shows as text. */
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-9;?]*[A-Za-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g;

export function clean(text: string): string {
  return text.replace(ESCAPES, "").replace(/\r\n/g, "\n").replace(/\r/g, "\n");
}

/** Text for a terminal: converts line ends only, and keeps colors and carriage returns. */
export function forTerminal(text: string): string {
  return text.replace(/\r?\n/g, "\r\n");
}

/** The header of a run. */
export function header(status: RunStatus, now = new Date()): string {
  const compiled = status.engine === "dynamo" ? "Run under torch.compile" : "Run compiled";
  const what = status.mode === "check" ? "Check" : compiled;
  return `──── ${what}: ${status.entrypoint} · ${now.toLocaleTimeString("en-GB")}`;
}

/** Puts a header before a run and its summary after it, each on a new line. */
export class Transcript {
  private readonly seen = new Map<number, { headed: boolean; ended: boolean }>();
  private atLineStart = true;

  constructor(private readonly now: () => Date = () => new Date()) {}

  status(status: RunStatus): string {
    const run = this.run(status.runId);
    let text = "";
    if (!run.headed) {
      run.headed = true;
      text += this.line(header(status, this.now()));
    }
    if (!isActive(status.state) && !run.ended) {
      run.ended = true;
      text += this.line(`──── ${status.summary}`) + "\n";
    }
    return text;
  }

  /** Resets after a restart of the server, which numbers its runs from the start. */
  forget(): void {
    this.seen.clear();
  }

  output(output: RunOutput): string {
    const text = clean(output.text);
    if (text !== "") {
      this.atLineStart = text.endsWith("\n");
    }
    return text;
  }

  private line(text: string): string {
    const prefix = this.atLineStart ? "" : "\n";
    this.atLineStart = true;
    return `${prefix}${text}\n`;
  }

  private run(id: number): { headed: boolean; ended: boolean } {
    let run = this.seen.get(id);
    if (run === undefined) {
      run = { headed: false, ended: false };
      this.seen.set(id, run);
    }
    return run;
  }
}
