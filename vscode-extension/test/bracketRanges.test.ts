import { describe, expect, it } from "vitest";
import type { TreeRegion, TreeRun } from "../src/protocol";
import { bracketsOf } from "../src/views/bracketRanges";

const URI = "file:///ws/train.py";

function region(first: number, last: number | null, changes: Partial<TreeRegion> = {}): TreeRegion {
  const at = (line: number) => ({ uri: URI, line, character: 0 });
  const end = last === null ? null : at(last);
  const rest = { id: "r", kind: "step", name: "r", summary: "", captures: [], findings: [], sideEffects: [] };
  return { ...rest, complete: true, place: at(first), end, ...changes };
}

function run(...regions: TreeRegion[]): TreeRun {
  const rest = { key: "k", label: "l", uri: URI, mode: "compiled", state: "done", summary: "", step: "" } as const;
  return { ...rest, endedAt: null, seconds: null, older: false, regions, findings: [] };
}

describe("bracketsOf", () => {
  it("marks statements, not functions, modules or what is cut", () => {
    const found = bracketsOf([run(region(3, 9), region(20, null), region(12, 14, { complete: false }))]);
    expect(found.get(URI)).toEqual([{ first: 3, last: 9 }]);
  });

  it("leaves out what lies inside, and what has changed", () => {
    const found = bracketsOf([run(region(5, 6), region(3, 9), region(10, 10), region(3, 9), region(11, 8))]);
    expect(found.get(URI)).toEqual([{ first: 3, last: 9 }, { first: 10, last: 10 }]);
    expect(bracketsOf([run(region(3, 9, { place: null }))]).size).toBe(0);
  });

  it("shows the newest run that has some", () => {
    expect(bracketsOf([run(region(3, 9)), run(region(4, 5)), run()]).get(URI)).toEqual([{ first: 4, last: 5 }]);
  });
});
