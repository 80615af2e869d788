import { describe, expect, it } from "vitest";
import type { TreeRun } from "../src/protocol";
import { ago, type Item, itemsOf } from "../src/views/treeItems";

const place = { uri: "file:///ws/train.py", line: 3, character: 0 };
const finding = { code: "MP101", severity: "warning", message: "first line\nsecond", count: 2, place } as const;

function run(changes: Partial<TreeRun> = {}): TreeRun {
  return {
    key: "/ws/train.py",
    label: "train.py",
    uri: "file:///ws/train.py",
    mode: "check",
    state: "done",
    summary: "1 region",
    step: "",
    endedAt: 1_000_000,
    seconds: 4,
    older: false,
    regions: [
      {
        id: "model: Net",
        kind: "module",
        name: "model: Net",
        complete: false,
        summary: "1 graph",
        place,
        end: null,
        captures: [
          { number: 1, summary: "a", guards: 1, operations: 5, objects: 3, writes: [], generated: 0 },
          { number: 2, summary: "b", guards: 2, operations: 1, objects: 1, writes: [{ text: "self: written: n", place }], generated: 2 },
        ],
        findings: [finding],
        sideEffects: [{ ...finding, code: "MP301", severity: "information" }],
      },
    ],
    findings: [finding],
    ...changes,
  };
}

const labels = (items: readonly Item[] | undefined): string[] => (items ?? []).map((item) => item.label);
const nameOf = (uri: string): string => uri.replace("file:///ws/", "");

describe("itemsOf", () => {
  const [item] = itemsOf([run()], 1_000_000 + 120_000, nameOf);

  it("nests regions, captures and findings under the entrypoint", () => {
    expect(item).toMatchObject({ label: "train.py", detail: "checked, 2 min ago", icon: "checklist" });
    expect(labels(item?.children)).toEqual(["model: Net", "MP101"]);
    const [region, runFinding] = item?.children ?? [];
    expect(region).toMatchObject({ icon: "circle-slash", at: { run: "/ws/train.py", region: "model: Net" } });
    expect(runFinding).toMatchObject({ detail: "first line", tooltip: "first line\nsecond", place });
    expect(labels(region?.children)).toEqual(["Capture 2", "Capture 1", "Findings", "Side effects"]);
  });

  it("starts the tooltip of a compiled run with its training step", () => {
    expect(item?.tooltip).toBe("1 region");
    const [compiled] = itemsOf([run({ mode: "compiled", step: "Step: 2 ms compiled." })], 0, nameOf);
    expect(compiled?.tooltip).toBe("Step: 2 ms compiled.\n\n1 region");
  });

  it("lists the views that a capture has, for that capture", () => {
    const [region] = item?.children ?? [];
    const [second, first] = region?.children ?? [];
    expect(labels(second?.children)).toEqual(["Operator graph", "Guards", "Reads and writes", "Generated code", "Writes"]);
    expect(labels(first?.children)).toEqual(["Operator graph", "Guards", "Reads and writes"]);
    expect(first?.children?.[0]).toMatchObject({
      command: "magpy.showOperatorGraph",
      at: { run: "/ws/train.py", region: "model: Net", capture: 1 },
      detail: "5 operations",
    });
  });

  it("gives every item a unique id", () => {
    const ids: string[] = [];
    const collect = (items: readonly Item[]): void => {
      for (const { id, children } of items) {
        ids.push(id);
        collect(children ?? []);
      }
    };
    collect(itemsOf([run(), run({ key: "-m train in /ws", label: "train" })], 0, nameOf));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("shows the state of each run, the latest first", () => {
    const items = itemsOf([run({ older: true }), run({ key: "b", state: "running", endedAt: null }), run({ key: "c", state: "failed" })], 1_000_000, nameOf);
    expect(items.map(({ detail }) => detail)).toEqual(["failed, just now", "running…", "checked, just now, older than the text"]);
    expect(items.map(({ icon }) => icon)).toEqual(["checklist", "sync~spin", "history"]);
  });

  it("labels modules and configured entrypoints with their names", () => {
    expect(labels(itemsOf([run({ key: "small: /ws/train.py", label: "small" })], 0, nameOf))).toEqual(["small"]);
    expect(labels(itemsOf([run({ key: "-m pkg.train in /ws", label: "pkg.train" })], 0, nameOf))).toEqual(["pkg.train"]);
  });
});

it.each([
  [5_000, "just now"],
  [60_000, "1 min ago"],
  [7_200_000, "2 h ago"],
  [86_400_000, "1 day ago"],
  [3 * 86_400_000, "3 days ago"],
])("ago(%d) is %s", (milliseconds, text) => {
  expect(ago(milliseconds)).toBe(text);
});
