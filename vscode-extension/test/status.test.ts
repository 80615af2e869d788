import { describe, expect, it } from "vitest";
import { RunList, statusText } from "../src/statusText";
import { run } from "./helpers";

describe("statusText", () => {
  it("shows the server's state before any run", () => {
    expect(statusText("starting", []).text).toContain("sync~spin");
    expect(statusText("failed", [], "no Python")).toMatchObject({ tooltip: "no Python", level: "error" });
    expect(statusText("stopped", [run()]).text).toContain("circle-slash");
    expect(statusText("ready", []).text).toBe("$(circuit-board) MagPy");
  });

  it("counts steps and runs", () => {
    expect(statusText("ready", [run({ step: 2 })]).text).toBe("$(sync~spin) MagPy: checking, step 2");
    expect(statusText("ready", [run({ mode: "compiled" })]).text).toBe("$(sync~spin) MagPy: running");
    expect(statusText("ready", [run(), run({ runId: 2 })]).text).toBe("$(sync~spin) MagPy: 2 runs");
  });

  it("says how the last run ended", () => {
    const findings = { error: 0, warning: 1, information: 3, hint: 9 };
    expect(statusText("ready", [run({ state: "done", findings })]).text).toBe("$(warning) MagPy: 1 warning");
    expect(statusText("ready", [run({ state: "done", findings: { ...findings, error: 2 } })]).level).toBe("error");
    expect(statusText("ready", [run({ state: "done" })]).text).toBe("$(check) MagPy");
    expect(statusText("ready", [run({ state: "failed", summary: "why" })])).toMatchObject({ level: "error", tooltip: "why" });
    expect(statusText("ready", [run({ state: "cancelled" })]).text).toContain("cancelled");
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
