import { describe, expect, it } from "vitest";
import { LatestRun } from "../src/views/latestRun";
import { live } from "./helpers";

describe("LatestRun", () => {
  it("shows the run that began last", () => {
    const runs = new LatestRun();
    expect(runs.shown).toBeUndefined();
    expect(runs.update(live({ runId: 1 }))).toBe(true);
    expect(runs.update(live({ runId: 2, entrypoint: "/ws/b.py", uri: "file:///ws/b.py" }))).toBe(true);
    expect(runs.update(live({ runId: 1, head: "step 9" }))).toBe(false);
    expect(runs.shown?.runId).toBe(2);
  });

  it("ignores a superseded run's end", () => {
    const runs = new LatestRun();
    runs.update(live({ runId: 3 }));
    expect(runs.update(live({ runId: 2, state: "superseded" }))).toBe(false);
    expect(runs.shown).toMatchObject({ runId: 3, state: "running" });
  });

  it("shows the chosen program until another run begins", () => {
    const runs = new LatestRun();
    const other = { entrypoint: "/ws/b.py", uri: "file:///ws/b.py" };
    runs.update(live({ runId: 1 }));
    runs.update(live({ runId: 2, ...other }));
    runs.choose("file:///ws/train.py");
    expect(runs.shown?.runId).toBe(1);
    expect(runs.update(live({ runId: 2, ...other, head: "step 2" }))).toBe(false);
    expect(runs.update(live({ runId: 3, ...other }))).toBe(true);
    runs.choose("file:///ws/unknown.py");
    expect(runs.shown?.runId).toBe(3);
  });

  it("ends runs with the server, whose next one numbers them from the start", () => {
    const runs = new LatestRun();
    runs.update(live({ runId: 7 }));
    runs.end();
    expect(runs.shown?.state).toBe("cancelled");
    expect(runs.update(live({ runId: 1 }))).toBe(true);
    expect(runs.shown?.state).toBe("running");
  });
});
