/** What the status bar says. Pure: see statusBar.ts for the item itself. */

import { isActive, type RunStatus } from "./protocol";

export type ServerState = "stopped" | "starting" | "ready" | "failed";

export interface StatusText {
  text: string;
  tooltip: string;
  level: "normal" | "warning" | "error";
}

export function plural(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

export function statusText(server: ServerState, runs: readonly RunStatus[], problem = ""): StatusText {
  if (server === "starting") {
    return { text: "$(sync~spin) MagPy", tooltip: "The language server is starting.", level: "normal" };
  }
  if (server === "failed") {
    return { text: "$(error) MagPy", tooltip: problem || "The language server did not start.", level: "error" };
  }
  if (server === "stopped") {
    return { text: "$(circle-slash) MagPy", tooltip: "The language server is not running.", level: "normal" };
  }
  const active = runs.filter((run) => isActive(run.state));
  const [first] = active;
  if (first !== undefined) {
    const verb = first.mode === "check" ? "checking" : "running";
    const where = active.length > 1 ? `${active.length} runs` : first.step > 0 ? `${verb}, step ${first.step}` : verb;
    return {
      text: `$(sync~spin) MagPy: ${where}`,
      tooltip: active.map((run) => run.summary).join("\n"),
      level: "normal",
    };
  }
  const last = runs.at(-1);
  if (last === undefined) {
    return { text: "$(circuit-board) MagPy", tooltip: "Nothing was checked yet.", level: "normal" };
  }
  switch (last.state) {
    case "failed":
      return { text: "$(error) MagPy: failed", tooltip: last.summary, level: "error" };
    case "cancelled":
      return { text: "$(circle-slash) MagPy: cancelled", tooltip: last.summary, level: "normal" };
    default: {
      const { error, warning } = last.findings;
      if (error > 0) {
        return { text: `$(error) MagPy: ${plural(error, "error")}`, tooltip: last.summary, level: "error" };
      }
      if (warning > 0) {
        return { text: `$(warning) MagPy: ${plural(warning, "warning")}`, tooltip: last.summary, level: "warning" };
      }
      return { text: "$(check) MagPy", tooltip: last.summary, level: "normal" };
    }
  }
}

/** Runs by entrypoint, the latest to change last, so that a finished run stays until that entrypoint's next one. */
export class RunList {
  private readonly byEntrypoint = new Map<string, RunStatus>();

  update(status: RunStatus): void {
    const known = this.byEntrypoint.get(status.entrypoint);
    // The end of a superseded run may arrive after the start of the one in its place.
    if (known !== undefined && known.runId > status.runId) {
      return;
    }
    this.byEntrypoint.delete(status.entrypoint);
    this.byEntrypoint.set(status.entrypoint, status);
  }

  clear(): void {
    this.byEntrypoint.clear();
  }

  get all(): RunStatus[] {
    return [...this.byEntrypoint.values()];
  }
}
