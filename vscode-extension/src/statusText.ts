/** The text of the status bar. Pure: see statusBar.ts for the item itself. */

import { isActive, type RunStatus } from "./protocol";

export type ServerState = "stopped" | "starting" | "ready" | "failed";

export interface StatusText {
  text: string;
  tooltip: string;
  level: "normal" | "warning" | "error";
  /** What a click does, if it doesn't open the menu. */
  command?: string;
}

const SHOW_RUN = "magpy.showRunView";

export function plural(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

/** How many of MagPy's diagnostics the Problems view has. */
export interface Problems {
  error: number;
  warning: number;
}

/** `problems`: while no program runs, the item says how many there are, of whichever run. */
export function statusText(
  server: ServerState,
  runs: readonly (RunStatus & { endedAt?: Date })[],
  problem: string,
  problems: Problems,
): StatusText {
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
    const doing = first.lowering ? `compiling kernels, ${first.lowering[0]} of ${first.lowering[1]}` : first.step > 0 ? `${verb}, step ${first.step}` : verb;
    const where = active.length > 1 ? `${active.length} runs` : doing;
    return {
      text: `$(sync~spin) MagPy: ${where}`,
      tooltip: active.map((run) => run.summary).join("\n"),
      level: "normal",
      command: active.some((run) => run.mode === "compiled") ? SHOW_RUN : undefined,
    };
  }
  const last = runs.at(-1);
  if (last === undefined) {
    return { text: "$(circuit-board) MagPy", tooltip: "There is no run yet.", level: "normal" };
  }
  const shown = ended(last, problems);
  if (last.stale === true) {
    const why = "\n\nThe shown findings are from an older run: the text has changed since then, or this run ended before it found any.";
    return { ...shown, text: `${shown.text} $(history)`, tooltip: shown.tooltip + why };
  }
  return shown;
}

/** The text for a run that has ended, with the time of its end. */
function ended(last: RunStatus & { endedAt?: Date }, problems: Problems): StatusText {
  const when = last.endedAt === undefined ? "" : ` (${last.endedAt.toLocaleTimeString("en-GB")})`;
  const tooltip = last.summary + when;
  switch (last.state) {
    case "failed":
      return { text: "$(error) MagPy: failed", tooltip, level: "error" };
    case "cancelled":
      return { text: "$(circle-slash) MagPy: cancelled", tooltip, level: "normal" };
    default: {
      const { error, warning } = problems;
      const gain = [last.gain, last.verified].filter((text) => text !== undefined && text !== "");
      const command = last.mode === "compiled" ? SHOW_RUN : undefined;
      if (error > 0) {
        return { text: `$(error) MagPy: ${[plural(error, "error"), ...gain].join(", ")}`, tooltip, level: "error", command };
      }
      if (warning > 0) {
        return { text: `$(warning) MagPy: ${[plural(warning, "warning"), ...gain].join(", ")}`, tooltip, level: "warning", command };
      }
      return { text: gain.length > 0 ? `$(check) MagPy: ${gain.join(", ")}` : "$(check) MagPy", tooltip, level: "normal", command };
    }
  }
}

/** Runs by entrypoint, the latest to change last, so that a finished run stays until that entrypoint's next one. */
export class RunList {
  private readonly byEntrypoint = new Map<string, RunStatus & { endedAt?: Date }>();

  constructor(private readonly now: () => Date = () => new Date()) {}

  update(status: RunStatus): void {
    const known = this.byEntrypoint.get(status.entrypoint);
    // The end of a superseded run may arrive after the start of its successor.
    if (known !== undefined && known.runId > status.runId) {
      return;
    }
    const hadEnded = known?.runId === status.runId && !isActive(known.state);
    const told = typeof status.endedMs === "number" ? new Date(status.endedMs) : this.now();
    const endedAt = isActive(status.state) ? undefined : hadEnded ? known.endedAt : told;
    if (hadEnded) {
      this.byEntrypoint.set(status.entrypoint, { ...status, endedAt }); // it became outdated: it keeps its position in the list
      return;
    }
    this.byEntrypoint.delete(status.entrypoint);
    this.byEntrypoint.set(status.entrypoint, { ...status, endedAt });
  }

  clear(): void {
    this.byEntrypoint.clear();
  }

  get all(): (RunStatus & { endedAt?: Date })[] {
    return [...this.byEntrypoint.values()];
  }
}
