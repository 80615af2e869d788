import { describe, expect, it } from "vitest";
import type { KernelSection } from "../src/protocol";
import { kernelAt, kernelsOf, linesIn, sourceLines } from "../src/views/inStep";

const MODEL = "file:///ws/model.py";
const TRAIN = "file:///ws/train.py";

function kernel(name: string, first: number, last: number, ...places: [string, number][]): KernelSection {
  const rest = { region: name === "adam" ? "optimizer" : "model", graph: "forward" };
  return { ...rest, name, first, last, places: places.map(([uri, line]) => ({ uri, line, character: 0 })) };
}

const KERNELS = [
  kernel("mm", 3, 8, [MODEL, 20]),
  kernel("gelu", 10, 30, [MODEL, 22], [MODEL, 21], [TRAIN, 4]),
  kernel("adam", 32, 60, [TRAIN, 9]),
];

function names(kernels: readonly KernelSection[]): string[] {
  return kernels.map(({ name }) => name);
}

describe("kernels of lines", () => {
  it("are those that compute something of one of them, in that file", () => {
    expect(names(kernelsOf(KERNELS, { uri: MODEL, first: 21, last: 21 }))).toEqual(["gelu"]);
    expect(names(kernelsOf(KERNELS, { uri: MODEL, first: 19, last: 22 }))).toEqual(["mm", "gelu"]);
    expect(names(kernelsOf(KERNELS, { uri: TRAIN, first: 4, last: 4 }))).toEqual(["gelu"]);
    expect(kernelsOf(KERNELS, { uri: TRAIN, first: 20, last: 22 })).toEqual([]);
  });

  it("are all of a region, wherever its lines are", () => {
    expect(names(kernelsOf(KERNELS, { uri: MODEL, first: 0, last: 0, region: "optimizer" }))).toEqual(["adam"]);
  });
});

describe("lines of a kernel", () => {
  it("are found from any of its lines in the text", () => {
    for (const line of [10, 17, 30]) {
      expect(linesIn(kernelAt(KERNELS, line), MODEL)).toEqual([21, 22]);
    }
    expect(linesIn(kernelAt(KERNELS, 30), TRAIN)).toEqual([4]);
  });

  it("are none between kernels", () => {
    expect(kernelAt(KERNELS, 9)).toBeUndefined();
    expect(linesIn(undefined, MODEL)).toEqual([]);
  });
});

describe("the argument of a command", () => {
  it("names lines, perhaps of a region", () => {
    expect(sourceLines({ uri: MODEL, first: 1, last: 2 })).toEqual({ uri: MODEL, first: 1, last: 2 });
    expect(sourceLines({ uri: MODEL, first: 1, last: 2, region: "r" })).toEqual({ uri: MODEL, first: 1, last: 2, region: "r" });
    expect(sourceLines({ uri: MODEL, first: 1, last: 2, region: "" })).not.toHaveProperty("region");
  });

  it.each([undefined, null, "x", {}, { uri: MODEL }, { uri: MODEL, first: -1, last: 0 }, { uri: 1, first: 0, last: 0 }, { fsPath: "/ws", scheme: "file" }])(
    "is ignored if it is %j",
    (about) => {
      expect(sourceLines(about)).toBeUndefined();
    },
  );
});
