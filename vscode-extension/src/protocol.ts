/** What the server and the extension say to each other beyond LSP. */

export type RunState = "starting" | "running" | "done" | "failed" | "cancelled" | "superseded";
export type Mode = "check" | "compiled";
export type SeverityName = "error" | "warning" | "information" | "hint";

/** `magpy/status`, and the answer to the run commands. */
export interface RunStatus {
  state: RunState;
  entrypoint: string;
  mode: Mode;
  uri: string;
  runId: number;
  summary: string;
  step: number;
  findings: Record<SeverityName, number>;
  failure: string | null;
}

/** `magpy/output`: text of the program, or of MagPy about it ("report"). */
export interface RunOutput {
  entrypoint: string;
  uri: string;
  runId: number;
  mode: Mode;
  channel: "stdout" | "stderr" | "report";
  text: string;
}

/** One entry of the answer to `magpy/codes`. */
export interface CodeInfo {
  code: string;
  name: string;
  title: string;
  url: string;
  /** Markdown. */
  page: string;
}

export const STATUS = "magpy/status";
export const OUTPUT = "magpy/output";
export const CODES = "magpy/codes";

/** Server commands; the language client registers these ids, so the extension's own commands have others. */
export const SERVER_COMMANDS = {
  check: "magpy.check",
  runCompiled: "magpy.runCompiled",
  cancel: "magpy.cancel",
  clear: "magpy.clear",
} as const;

export function isActive(state: RunState): boolean {
  return state === "starting" || state === "running";
}
