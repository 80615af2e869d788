/** Which MagPy an interpreter runs: the one installed there, or the one that the extension brings. Pure. */

import type { Interpreter } from "./interpreter";

/** What pip installs: `magpy` on the index is another project's. */
export const DISTRIBUTION = "magpy-lsp";

/**
 * Code for a candidate interpreter; its output decides what it runs. It runs on old versions of Python, which have to say so.
 * `-c` adds the current folder to the path, and a workspace file must not shadow a module.
 */
export const PROBE = `import sys
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]
installed, serves = "-", False
try:
    from importlib.util import find_spec
    import magpy_core
    installed = magpy_core.__version__
    serves = all(map(find_spec, ("lsp_server", "pygls", "lsprotocol")))
except ImportError:
    pass
sys.stdout.write("magpy-probe %d.%d %s %s\\n" % (sys.version_info[0], sys.version_info[1], installed, serves))
`;

export interface Probe {
  code: number | undefined;
  stdout: string;
  stderr: string;
}

/** What the extension brings. */
export interface Own {
  version: string;
  /** The file that starts it; undefined in a checkout where it has not been built. */
  file: string | undefined;
}

export interface Installation {
  /** Python's arguments that start the language server. */
  server: string[];
  /** Python's arguments for `magpy-lsp`, before the command. */
  cli: string[];
  source: "interpreter" | "extension";
  /** Something that the user should know, although it works. */
  notice?: string;
}

/** What an interpreter runs; or its problem, and what to do. -P: a workspace file must not shadow one of our modules. */
export function installationOf(interpreter: Interpreter, probe: Probe, own: Own): Installation | { problem: string } {
  const named = `${interpreter.path} (from ${interpreter.source === "setting" ? "magpy.interpreter" : interpreter.source})`;
  if (probe.code === undefined) {
    return { problem: `MagPy can't start the Python ${named}: ${lastLine(probe.stderr)}. Choose another interpreter.` };
  }
  const facts = /^magpy-probe (\d+)\.(\d+) (\S+) (True|False)\s*$/m.exec(probe.stdout);
  if (probe.code !== 0 || facts === null) {
    return { problem: `The Python ${named} does not work: ${lastLine(probe.stderr) || `exit code ${probe.code}`}. Choose another interpreter.` };
  }
  const [, major, minor, version, serves] = facts;
  if (Number(major) !== 3 || Number(minor) < 11) {
    return { problem: `MagPy needs Python 3.11 or later; ${named} is ${major}.${minor}. Choose another interpreter.` };
  }
  const is = version === own.version || own.file === undefined;
  if (serves === "True" && is) {
    return { server: ["-P", "-m", "lsp_server.server.main"], cli: ["-P", "-m", "lsp_server.cli"], source: "interpreter" };
  }
  if (own.file === undefined) {
    return { problem: `MagPy is not installed in ${named}. Install it there (pip install ${DISTRIBUTION}) or choose another interpreter.` };
  }
  const brought: Installation = { server: ["-P", own.file, "server"], cli: ["-P", own.file], source: "extension" };
  if (version === "-" || is) {
    return brought;
  }
  const install = `${interpreter.path} -m pip install ${DISTRIBUTION}==${own.version}`;
  const notice = `MagPy ${version} is installed in ${interpreter.path}, but this extension is MagPy ${own.version}, and programs there would run with the other: install this version (${install}), or uninstall it.`;
  return { ...brought, notice };
}

function lastLine(text: string): string {
  return (text.trim().split("\n").at(-1) ?? "").replace(/\.$/, "");
}
