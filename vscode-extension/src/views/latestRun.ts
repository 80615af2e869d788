/** Which of several runs the run view shows. Pure. */

import { isActive, type LiveRun } from "../protocol";

/** The latest state of the run that began last, or of the chosen program's last run. */
export class LatestRun {
  private readonly byEntrypoint = new Map<string, LiveRun>();
  private chosen: string | undefined; // the URI of a program; until another one begins
  private newest = 0;

  /** Whether what is shown has changed. */
  update(run: LiveRun): boolean {
    const known = this.byEntrypoint.get(run.entrypoint);
    if (known !== undefined && known.runId > run.runId) {
      return false; // the end of a superseded run may arrive after the start of its successor
    }
    if (run.runId > this.newest) {
      this.newest = run.runId;
      this.chosen = undefined;
    }
    this.byEntrypoint.set(run.entrypoint, run);
    return this.shown === run;
  }

  /** Shows the runs of a program from now on; undefined: those of the last program that began. */
  choose(uri: string | undefined): void {
    this.chosen = uri;
  }

  /** The server has exited, which ended all runs. */
  end(): void {
    for (const [entrypoint, run] of this.byEntrypoint) {
      this.byEntrypoint.set(entrypoint, { ...run, runId: 0, state: isActive(run.state) ? "cancelled" : run.state });
    }
    this.newest = 0;
  }

  get shown(): LiveRun | undefined {
    const runs = [...this.byEntrypoint.values()].sort((a, b) => a.runId - b.runId);
    return runs.filter((run) => run.uri === this.chosen).at(-1) ?? runs.at(-1);
  }
}
