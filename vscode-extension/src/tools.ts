/** The commands of `magpy-lsp` that the editor offers for the first minutes. Key names: Tool, TOOLS, toolArgs. */

export type Tool = "demo" | "init" | "doctor";

/** `opens`: the file that it writes, relative to the folder it runs in. */
export const TOOLS: Record<Tool, { command: string; title: string; opens?: string }> = {
  demo: { command: "magpy.tryExample", title: "try an example", opens: "magpy-demo/train.py" },
  init: { command: "magpy.setUpProject", title: "set up this project", opens: "pyproject.toml" },
  doctor: { command: "magpy.checkInstallation", title: "check the installation" },
};

/** Python's arguments. -P: a file of the workspace must not shadow one of MagPy's modules. */
export function toolArgs(tool: Tool): string[] {
  return ["-P", "-m", "lsp_server.cli", tool];
}
