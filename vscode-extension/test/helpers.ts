/** Test data. */

import type { LiveRun, RunStatus } from "../src/protocol";

export function run(changes: Partial<RunStatus> = {}): RunStatus {
  return {
    state: "running",
    entrypoint: "/ws/train.py",
    mode: "check",
    uri: "file:///ws/train.py",
    runId: 1,
    summary: "Checking train.py",
    step: 0,
    findings: { error: 0, warning: 0, information: 0, hint: 0 },
    failure: null,
    ...changes,
  };
}

export function live(changes: Partial<LiveRun> = {}): LiveRun {
  return {
    runId: 1,
    entrypoint: "/ws/train.py",
    uri: "file:///ws/train.py",
    label: "train.py",
    state: "running",
    doing: "",
    failure: "",
    head: "step 1",
    lines: [],
    bars: [],
    barsOf: "",
    ...changes,
  };
}
