import { describe, expect, it } from "vitest";
import { argumentOf, compareArgs, merged } from "../src/entrypoints";

const base = { folder: "/ws", home: "/home/u", toUri: (file: string): string => `file://${file}` };

describe("argumentOf", () => {
  it("resolves relative paths against the folder", () => {
    const entry = {
      name: "small", program: "train.py", args: ["--data", "${workspaceFolder}/d"], env: { A: "1" }, cwd: "sub", python: "env/bin/python", steps: 2, nproc: 2,
    };
    expect(argumentOf(entry, base)).toEqual({
      uri: "file:///ws/train.py", name: "small", args: ["--data", "/ws/d"], env: { A: "1" }, cwd: "/ws/sub", python: "/ws/env/bin/python", steps: 2, nproc: 2,
    });
  });

  it("omits values that are missing, or null as from pyproject.toml", () => {
    const entry = { name: "m", module: "pkg.train", program: null, cwd: null, python: null, steps: null, nproc: 0, folder: "/other" };
    expect(argumentOf(entry, base)).toEqual({ uri: "file:///other/__main__.py", name: "m", module: "pkg.train", args: [], cwd: "/other" });
    expect(argumentOf({ name: "a", program: "/abs/t.py" }, base)).toEqual({ uri: "file:///abs/t.py", name: "a", args: [], cwd: "/ws" });
  });

  it("keeps 0 steps", () => {
    expect(argumentOf({ name: "a", program: "t.py", steps: 0 }, base).steps).toBe(0);
  });

  it("requires either program or module", () => {
    expect(() => argumentOf({ name: "none" }, base)).toThrow("“none” needs either program or module");
    expect(() => argumentOf({ name: "both", program: "a.py", module: "a" }, base)).toThrow("either");
  });
});

it("prefers an entrypoint of the settings to one of pyproject.toml with the same name", () => {
  const own = [{ name: "a", program: "own.py" }];
  expect(merged(own, [{ name: "a", program: "other.py" }, { name: "b", program: "b.py" }]).map((entry) => entry.program)).toEqual(["own.py", "b.py"]);
});

describe("compareArgs", () => {
  it("is a command line of MagPy, with the program's arguments after --", () => {
    expect(compareArgs({ uri: "file:///ws/t.py", args: ["--engine", "x"], cwd: "/ws", nproc: 2 }, "/ws/t.py", "eager")).toEqual([
      "check", "--engine", "both", "--exit-zero", "--backend", "eager", "--cwd", "/ws", "--nproc-per-node", "2", "/ws/t.py", "--", "--engine", "x",
    ]);
    expect(compareArgs({ uri: "u", module: "pkg", python: "/p" }, "/x").slice(-4)).toEqual(["--python", "/p", "-m", "pkg"]);
  });
});
