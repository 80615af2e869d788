import { describe, expect, it } from "vitest";
import { candidates, expand, findInterpreter, type Surroundings } from "../src/interpreter";

function surroundings(changes: Partial<Surroundings> = {}): Surroundings {
  return {
    setting: "",
    folder: "/ws",
    home: "/home/u",
    platform: "linux",
    isFile: () => false,
    selected: () => Promise.resolve(undefined),
    ...changes,
  };
}

describe("findInterpreter", () => {
  it("prefers the setting", async () => {
    const found = await findInterpreter(surroundings({ setting: " ${workspaceFolder}/env/bin/python ", selected: () => Promise.resolve("/x") }));
    expect(found).toEqual({ path: "/ws/env/bin/python", source: "setting" });
  });

  it("falls back to the Python extension's interpreter, then .venv, then PATH", async () => {
    const isFile = (file: string): boolean => file === "/ws/.venv/bin/python";
    const selected = (): Promise<string> => Promise.resolve("/sel/python");
    expect((await findInterpreter(surroundings({ isFile, selected }))).path).toBe("/sel/python");
    expect((await findInterpreter(surroundings({ isFile }))).path).toBe("/ws/.venv/bin/python");
    expect((await findInterpreter(surroundings())).path).toBe("python3");
    expect((await findInterpreter(surroundings({ folder: undefined, isFile }))).path).toBe("python3");
  });

  it("uses python, not python3, on Windows", async () => {
    expect((await findInterpreter(surroundings({ platform: "win32" }))).path).toBe("python");
  });
});

describe("expand", () => {
  it.each([
    ["~/py", "/home/u/py"],
    ["./env/bin/python", "/ws/env/bin/python"],
    ["python3.12", "python3.12"],
    ["/abs/python", "/abs/python"],
    ["${userHome}/p", "/home/u/p"],
  ])("%s", (value, expected) => {
    expect(expand(value, "/ws", "/home/u")).toBe(expected);
  });
});

describe("candidates", () => {
  it("are the folder's, the active ones, the Python extension's and those on PATH, each once", () => {
    const files = new Set(["/ws/.venv/bin/python", "/active/bin/python", "/conf/python", "/usr/bin/python3", "/usr/bin/python3.12"]);
    const found = candidates({
      folder: "/ws",
      platform: "linux",
      env: { VIRTUAL_ENV: "/active", CONDA_PREFIX: "/gone", PATH: "/usr/bin:/bin:relative:/usr/bin" },
      configured: "/conf/python",
      isFile: (file) => files.has(file),
    });
    expect(found.map((one) => `${one.path} ${one.source}`)).toEqual([
      "/ws/.venv/bin/python .venv", "/active/bin/python active environment", "/conf/python python.defaultInterpreterPath",
      "/usr/bin/python3 PATH", "/usr/bin/python3.12 PATH",
    ]);
  });

  it("are those on PATH without a folder", () => {
    expect(candidates({ folder: undefined, platform: "linux", env: {}, configured: "python", isFile: () => true })).toEqual([]);
  });
});
