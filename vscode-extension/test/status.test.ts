import { describe, expect, it } from "vitest";
import { type Problems, RunList, statusText as textOf } from "../src/statusText";
import { run } from "./helpers";

const NONE: Problems = { error: 0, warning: 0 };

function statusText(server: Parameters<typeof textOf>[0], runs: Parameters<typeof textOf>[1], problem = "", problems = NONE): ReturnType<typeof textOf> {
  return textOf(server, runs, problem, problems);
}

describe("statusText", () => {
  it("shows the server's state", () => {
    expect(statusText("starting", []).text).toContain("sync~spin");
    expect(statusText("failed", [], "no Python")).toMatchObject({ tooltip: "no Python", level: "error" });
    expect(statusText("stopped", [run()]).text).toContain("circle-slash");
    expect(statusText("ready", []).text).toBe("$(circuit-board) MagPy");
  });

  it("shows a run's step, or the number of runs", () => {
    expect(statusText("ready", [run({ step: 2 })]).text).toBe("$(sync~spin) MagPy: checking, step 2");
    expect(statusText("ready", [run({ mode: "compiled" })]).text).toBe("$(sync~spin) MagPy: running");
    expect(statusText("ready", [run({ step: 2, lowering: [1, 3] })]).text).toBe("$(sync~spin) MagPy: compiling kernels, 1 of 3");
    expect(statusText("ready", [run({ step: 2, lowering: null })]).text).toBe("$(sync~spin) MagPy: checking, step 2");
    expect(statusText("ready", [run(), run({ runId: 2 })]).text).toBe("$(sync~spin) MagPy: 2 runs");
  });

  it("shows how the last run ended", () => {
    const done = [run({ state: "done" })];
    expect(statusText("ready", done, "", { error: 0, warning: 1 }).text).toBe("$(warning) MagPy: 1 warning");
    expect(statusText("ready", done, "", { error: 2, warning: 1 }).level).toBe("error");
    expect(statusText("ready", [run({ state: "done" })]).text).toBe("$(check) MagPy");
    expect(statusText("ready", [run({ state: "failed", summary: "why" })])).toMatchObject({ level: "error", tooltip: "why" });
    expect(statusText("ready", [run({ state: "cancelled" })]).text).toContain("cancelled");
  });

  it("says what a compiled run has gained, and opens its view", () => {
    const done = run({ state: "done", mode: "compiled", gain: "1.53x, saved 41.0 s of 310 s" });
    expect(statusText("ready", [done])).toMatchObject({ text: "$(check) MagPy: 1.53x, saved 41.0 s of 310 s", command: "magpy.showRunView" });
    const warned = { error: 0, warning: 1 };
    expect(statusText("ready", [done], "", warned).text).toBe("$(warning) MagPy: 1 warning, 1.53x, saved 41.0 s of 310 s");
    expect(statusText("ready", [{ ...done, gain: "" }], "", warned).text).toBe("$(warning) MagPy: 1 warning");
    const compared = { ...done, verified: "verified 12 of 12 graphs" };
    expect(statusText("ready", [compared]).text).toBe("$(check) MagPy: 1.53x, saved 41.0 s of 310 s, verified 12 of 12 graphs");
    expect(statusText("ready", [{ ...compared, gain: "" }]).text).toBe("$(check) MagPy: verified 12 of 12 graphs");
    expect(statusText("ready", [{ ...compared, verified: "", gain: "" }]).text).toBe("$(check) MagPy");
    expect(statusText("ready", [run({ mode: "compiled" })]).command).toBe("magpy.showRunView");
    expect(statusText("ready", [run()]).command).toBeUndefined();
    expect(statusText("ready", [run({ state: "done" })]).command).toBeUndefined();
  });
});

describe("a finished run", () => {
  it("is shown with its time, and marked if its findings are from an older run", () => {
    const list = new RunList(() => new Date(2026, 0, 1, 12, 30, 0));
    list.update(run({ state: "done", summary: "all well" }));
    expect(statusText("ready", list.all)).toMatchObject({ text: "$(check) MagPy", tooltip: "all well (12:30:00)" });
    list.update(run({ state: "done", summary: "all well", stale: true }));
    const stale = statusText("ready", list.all);
    expect(stale.text).toBe("$(check) MagPy $(history)");
    expect(stale.tooltip).toContain("from an older run");
    expect(stale.tooltip).toContain("12:30:00");
  });

  it("keeps its position when it becomes stale", () => {
    const list = new RunList();
    list.update(run({ runId: 1, state: "done" }));
    list.update(run({ runId: 2, entrypoint: "/ws/b.py", state: "done" }));
    list.update(run({ runId: 1, state: "done", stale: true }));
    expect(list.all.map((r) => r.runId)).toEqual([1, 2]);
  });
});

describe("RunList", () => {
  it("keeps the newest run of an entrypoint", () => {
    const list = new RunList();
    list.update(run({ runId: 2 }));
    list.update(run({ runId: 1, state: "superseded" }));
    expect(list.all.map((r) => [r.runId, r.state])).toEqual([[2, "running"]]);
    list.update(run({ runId: 3, entrypoint: "/ws/other.py" }));
    list.update(run({ runId: 2, state: "done" }));
    expect(list.all.map((r) => r.runId)).toEqual([3, 2]);
    list.clear();
    expect(list.all).toEqual([]);
  });
});

describe("a run of the last session", () => {
  it("ended when it ended, not when the editor started", () => {
    const runs = new RunList(() => new Date(2026, 1, 1));
    runs.update(run({ state: "done", endedMs: new Date(2026, 0, 1, 12, 34, 56).getTime() }));
    expect(statusText("ready", runs.all).tooltip).toContain("(12:34:56)");
  });
});
