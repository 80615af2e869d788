import { describe, expect, it } from "vitest";
import { expand, findInterpreter, probeProblem, type Surroundings } from "../src/interpreter";

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

describe("probeProblem", () => {
  const interpreter = { path: "/p", source: "setting" } as const;

  it("is undefined for a usable interpreter", () => {
    expect(probeProblem(interpreter, { code: 0, stdout: "3.11 True\n", stderr: "" })).toBeUndefined();
  });

  it.each([
    [{ code: undefined, stdout: "", stderr: "spawn /p ENOENT" }, "can't start the Python /p (from magpy.interpreter): spawn /p ENOENT."],
    [{ code: 1, stdout: "", stderr: "Traceback\nSyntaxError: bad" }, "does not work: SyntaxError: bad."],
    [{ code: 0, stdout: "hello", stderr: "" }, "does not work: exit code 0."],
    [{ code: 0, stdout: "3.9 False\n", stderr: "" }, "is 3.9"],
    [{ code: 0, stdout: "3.12 False\n", stderr: "" }, "pip install magpy-lsp"],
  ])("describes the problem", (probe, expected) => {
    expect(probeProblem(interpreter, probe)).toContain(expected);
  });
});
