/** Entrypoint configurations, like launch.json's, as arguments of the run commands. Pure. */

import * as path from "node:path";
import { expand } from "./interpreter";
import type { Entrypoint, RunArgument } from "./protocol";

/** The base of an entrypoint's relative paths. */
export interface Base {
  /** The workspace folder, or the folder of the pyproject.toml that has it. */
  folder: string;
  home: string;
  toUri(file: string): string;
}

/** The argument that starts `entry`; throws an error with a message if the entry is invalid. */
export function argumentOf(entry: Entrypoint, base: Base): RunArgument {
  const folder = entry.folder ?? base.folder;
  const full = (value: string): string => {
    const expanded = expand(value, folder, base.home);
    return path.isAbsolute(expanded) ? expanded : path.join(folder, expanded);
  };
  const program = entry.program ?? undefined;
  const module = entry.module ?? undefined;
  if ((program === undefined) === (module === undefined)) {
    throw new Error(`The entrypoint “${entry.name}” needs either program or module.`);
  }
  return {
    // Only Python knows the file of a module, so the folder represents it.
    uri: base.toUri(program === undefined ? path.join(folder, "__main__.py") : full(program)),
    name: entry.name,
    ...(module === undefined ? {} : { module }),
    args: (entry.args ?? []).map((arg) => arg.replaceAll("${workspaceFolder}", folder)),
    ...(entry.env === undefined ? {} : { env: entry.env }),
    cwd: entry.cwd == null ? folder : full(entry.cwd),
    ...(entry.python == null ? {} : { python: expand(entry.python, folder, base.home) }),
    ...(entry.steps == null ? {} : { steps: entry.steps }),
    ...(entry.nproc === undefined || entry.nproc === 0 ? {} : { nproc: entry.nproc }),
  };
}

/** The entrypoints of the settings first; they hide those of pyproject.toml with the same name. */
export function merged(settings: readonly Entrypoint[], project: readonly Entrypoint[]): Entrypoint[] {
  const names = new Set(settings.map((entry) => entry.name));
  return [...settings, ...project.filter((entry) => !names.has(entry.name))];
}

/** What `magpy-lsp` gets to compare both engines; an empty `backend` means the default. */
export function compareArgs(argument: RunArgument, file: string, backend = ""): string[] {
  const program = argument.module === undefined ? [file] : ["-m", argument.module];
  const options = [
    ...(backend === "" ? [] : ["--backend", backend]),
    ...(argument.python === undefined ? [] : ["--python", argument.python]),
    ...(argument.cwd === undefined ? [] : ["--cwd", argument.cwd]),
    ...(argument.nproc === undefined ? [] : ["--nproc-per-node", String(argument.nproc)]),
  ];
  const line = ["check", "--engine", "both", "--exit-zero", ...options, ...program];
  return argument.args === undefined || argument.args.length === 0 ? line : [...line, "--", ...argument.args];
}
