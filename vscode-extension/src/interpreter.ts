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

export interface Places {
  folder: string | undefined;
  platform: NodeJS.Platform;
  env: Readonly<Record<string, string | undefined>>;
  /** The value of `python.defaultInterpreterPath`. */
  configured: string;
  isFile(file: string): boolean;
}

/** The interpreters to choose from: those of the folder, the active environments, the Python extension's setting, PATH. */
export function candidates(places: Places): { path: string; source: string }[] {
  const { folder, env } = places;
  const windows = places.platform === "win32";
  const own = (environment: string): string => path.join(environment, ...(windows ? ["Scripts", "python.exe"] : ["bin", "python"]));
  const found: { path: string; source: string }[] = [];
  for (const name of folder === undefined ? [] : [".venv", "venv", "env"]) {
    found.push({ path: own(path.join(folder ?? "", name)), source: name });
  }
  for (const name of ["VIRTUAL_ENV", "CONDA_PREFIX"]) {
    const environment = env[name];
    if (environment !== undefined && environment !== "") {
      found.push({ path: own(environment), source: "active environment" });
    }
  }
  if (path.isAbsolute(places.configured)) {
    found.push({ path: places.configured, source: "python.defaultInterpreterPath" });
  }
  for (const place of (env["PATH"] ?? "").split(path.delimiter).filter((one) => path.isAbsolute(one))) {
    const names = windows ? ["python.exe"] : ["python3", "python3.14", "python3.13", "python3.12", "python3.11"];
    found.push(...names.map((name) => ({ path: path.join(place, name), source: "PATH" })));
  }
  const seen = new Set<string>();
  return found.filter((one) => places.isFile(one.path) && !seen.has(one.path) && seen.add(one.path));
}
