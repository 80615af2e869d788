/** Selects the Python interpreter. Pure: files, other extensions and processes are passed as functions. */

import * as path from "node:path";

export interface Surroundings {
  /** The value of `magpy.interpreter`. */
  setting: string;
  /** The workspace folder, if there is one. */
  folder: string | undefined;
  home: string;
  platform: NodeJS.Platform;
  isFile(file: string): boolean;
  /** The Python extension's interpreter; undefined if the extension is not installed. */
  selected(): Promise<string | undefined>;
}

export interface Interpreter {
  path: string;
  source: "setting" | "Python extension" | "workspace .venv" | "PATH";
}

export function expand(value: string, folder: string | undefined, home: string): string {
  let expanded = value.replaceAll("${workspaceFolder}", folder ?? "").replaceAll("${userHome}", home);
  if (expanded === "~" || expanded.startsWith("~/") || expanded.startsWith("~\\")) {
    expanded = home + expanded.slice(1);
  }
  const isPath = expanded.includes("/") || expanded.includes("\\");
  return isPath && folder !== undefined && !path.isAbsolute(expanded) ? path.join(folder, expanded) : expanded;
}

export async function findInterpreter(from: Surroundings): Promise<Interpreter> {
  const setting = from.setting.trim();
  if (setting !== "") {
    return { path: expand(setting, from.folder, from.home), source: "setting" };
  }
  const selected = await from.selected();
  if (selected !== undefined && selected !== "") {
    return { path: selected, source: "Python extension" };
  }
  const windows = from.platform === "win32";
  if (from.folder !== undefined) {
    const own = path.join(from.folder, ".venv", ...(windows ? ["Scripts", "python.exe"] : ["bin", "python"]));
    if (from.isFile(own)) {
      return { path: own, source: "workspace .venv" };
    }
  }
  return { path: windows ? "python" : "python3", source: "PATH" };
}

/** Code for a candidate interpreter; its output decides whether the interpreter can run the server. */
export const PROBE = "import sys, importlib.util as u; print('%d.%d' % sys.version_info[:2], bool(u.find_spec('lsp_server')))";

export interface Probe {
  code: number | undefined;
  stdout: string;
  stderr: string;
}

/** The interpreter's problem, and what to do; undefined if it can run the server. */
export function probeProblem(interpreter: Interpreter, probe: Probe): string | undefined {
  const named = `${interpreter.path} (from ${interpreter.source === "setting" ? "magpy.interpreter" : interpreter.source})`;
  if (probe.code === undefined) {
    return `MagPy can't start the Python ${named}: ${firstLine(probe.stderr)}. Choose another interpreter.`;
  }
  const facts = /^(\d+)\.(\d+) (True|False)\s*$/.exec(probe.stdout);
  if (probe.code !== 0 || facts === null) {
    return `The Python ${named} does not work: ${firstLine(probe.stderr) || `exit code ${probe.code}`}. Choose another interpreter.`;
  }
  const [, major, minor, installed] = facts;
  if (Number(major) !== 3 || Number(minor) < 11) {
    return `MagPy needs Python 3.11 or later; ${named} is ${major}.${minor}. Choose another interpreter.`;
  }
  if (installed === "False") {
    return `MagPy is not installed in ${named}. Install it there (pip install magpy-lsp) or choose another interpreter.`;
  }
  return undefined;
}

function firstLine(text: string): string {
  return (text.trim().split("\n").at(-1) ?? "").replace(/\.$/, "");
}
