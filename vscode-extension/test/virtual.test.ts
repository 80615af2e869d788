import { describe, expect, it } from "vitest";
import { graphHtml } from "../src/views/graphHtml";
import { captureAt, nameOf, wantedOf } from "../src/views/virtual";

describe("URIs of virtual documents", () => {
  it("can be parsed back into the request", () => {
    const wanted = { kind: "guards", run: "/ws/a b.py", region: "model: Net", capture: 2 } as const;
    const { path, query } = nameOf(wanted, "model: Net");
    expect(path).toBe("/model: Net 2 guards.py");
    expect(wantedOf(query)).toEqual(wanted);
  });

  it("name kernels, and the line of PTX", () => {
    expect(nameOf({ kind: "triton", run: "r" }, "train.py").path).toBe("/train.py Triton.py");
    const wanted = { kind: "ptx", run: "r", uri: "file:///ws/train.py", line: 4 } as const;
    const { path, query } = nameOf(wanted, "train.py line 5");
    expect(path).toBe("/train.py line 5 PTX.ptx");
    expect(wantedOf(query)).toEqual(wanted);
  });

  it("replace path separators in the region's name", () => {
    expect(nameOf({ kind: "references" }, "fn: a/b\\c").path).toBe("/fn: a-b-c reads and writes.py");
  });

  it.each(["", "{", "null", "[]", '{"kind":"passwd"}'])("are rejected if the query is %j", (query) => {
    expect(wantedOf(query)).toBeUndefined();
  });
});

describe("captureAt", () => {
  it("accepts a region's id, a capture, or an item of the tree", () => {
    expect(captureAt("model: Net")).toEqual({ region: "model: Net" });
    expect(captureAt({ run: "r", region: "m", capture: 3, more: 1 })).toEqual({ run: "r", region: "m", capture: 3 });
    expect(captureAt({ id: "x", label: "y", at: { run: "r" } })).toEqual({ run: "r" });
  });

  it.each([undefined, null, 3, {}, { run: 1, capture: "2" }])("ignores %j", (argument) => {
    expect(captureAt(argument)).toEqual({});
  });
});

describe("graphHtml", () => {
  const html = graphHtml({ script: "vscode-resource:/dist/graph.js", source: "https://csp", nonce: "n0nce" });

  it("allows only its own script and loads nothing else", () => {
    const policy = /content="([^"]+)"/.exec(html)?.[1] ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'nonce-n0nce'");
    expect(policy).not.toMatch(/unsafe/);
    expect(html.match(/<script/g)).toHaveLength(1);
    expect(html).toContain('<script nonce="n0nce" src="vscode-resource:/dist/graph.js"></script>');
    expect(html).not.toMatch(/ on\w+=|style="/);
  });
});
