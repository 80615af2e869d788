import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { installationOf, PROBE } from "../src/installation";

const interpreter = { path: "/p", source: "setting" } as const;
const own = { version: "0.2.0", file: "/ext/bundled/magpy.py" };
const installed = { server: ["-P", "-m", "lsp_server.server.main"], cli: ["-P", "-m", "lsp_server.cli"], source: "interpreter" };
const brought = { server: ["-P", "/ext/bundled/magpy.py", "server"], cli: ["-P", "/ext/bundled/magpy.py"], source: "extension" };

function says(stdout: string): { code: number; stdout: string; stderr: string } {
  return { code: 0, stdout, stderr: "" };
}

describe("installationOf", () => {
  it("prefers the installed one of the same version", () => {
    expect(installationOf(interpreter, says("magpy-probe 3.11 0.2.0 True\n"), own)).toEqual(installed);
  });

  it("brings its own where there is none, or the server's packages are missing", () => {
    expect(installationOf(interpreter, says("magpy-probe 3.12 - False\n"), own)).toEqual(brought);
    expect(installationOf(interpreter, says("magpy-probe 3.12 0.2.0 False\n"), own)).toEqual(brought);
    expect(installationOf(interpreter, says("of a sitecustomize\nmagpy-probe 3.12 - False\n"), own)).toEqual(brought);
  });

  it("names another version", () => {
    const found = installationOf(interpreter, says("magpy-probe 3.12 0.1.0 True\n"), own);
    expect(found).toMatchObject(brought);
    expect(found).toHaveProperty("notice", expect.stringContaining("MagPy 0.1.0 is installed in /p, but this extension is MagPy 0.2.0"));
    expect(found).toHaveProperty("notice", expect.stringContaining("/p -m pip install magpy-lsp==0.2.0"));
  });

  it("takes what is installed in a checkout without its own", () => {
    const checkout = { version: "0.2.0", file: undefined };
    expect(installationOf(interpreter, says("magpy-probe 3.11 0.1.0 True\n"), checkout)).toEqual(installed);
    expect(installationOf(interpreter, says("magpy-probe 3.12 - False\n"), checkout)).toHaveProperty("problem", expect.stringContaining("pip install magpy-lsp"));
  });

  it.each([
    [{ code: undefined, stdout: "", stderr: "spawn /p ENOENT" }, "can't start the Python /p (from magpy.interpreter): spawn /p ENOENT."],
    [{ code: 1, stdout: "", stderr: "Traceback\nSyntaxError: bad" }, "does not work: SyntaxError: bad."],
    [says("hello"), "does not work: exit code 0."],
    [says("magpy-probe 3.9 - False\n"), "is 3.9"],
    [says("magpy-probe 2.7 - False\n"), "MagPy needs Python 3.11 or later"],
  ])("describes the problem", (probe, expected) => {
    expect(installationOf(interpreter, probe, own)).toHaveProperty("problem", expect.stringContaining(expected));
  });
});

it("asks a Python", () => {
  const venv = join(__dirname, "..", "..", ".venv", "bin", "python");
  const answer = execFileSync(existsSync(venv) ? venv : "python3", ["-c", PROBE], { encoding: "utf8" });
  expect(answer).toMatch(/^magpy-probe 3\.\d+ \S+ (True|False)\n$/);
});
