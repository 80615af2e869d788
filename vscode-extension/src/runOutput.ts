/** Run headers and program output as the lines of an output channel. Pure. */

import { isActive, type RunOutput, type RunStatus } from "./protocol";

/** The escape sequences that colour or move the cursor: an output channel shows them as rubbish. */
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-9;?]*[A-Za-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g;

export function clean(text: string): string {
  return text.replace(ESCAPES, "").replace(/\r\n/g, "\n").replace(/\r/g, "\n");
}

/** Text for a terminal: line ends only. What the program does with colours and carriage returns is its own. */
export function forTerminal(text: string): string {
  return text.replace(/\r?\n/g, "\r\n");
}

/** What a run begins with. */
export function header(status: RunStatus, now = new Date()): string {
  const compiled = status.engine === "dynamo" ? "Run under torch.compile" : "Run compiled";
  const what = status.mode === "check" ? "Check" : compiled;
  return `──── ${what}: ${status.entrypoint} · ${now.toLocaleTimeString("en-GB")}`;
}

/** Puts a header before a run and its summary after it, and never glues either to a half-written line. */
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

  /** The server is another one: it numbers its runs anew. */
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
