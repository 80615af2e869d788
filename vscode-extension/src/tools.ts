/** The commands of `magpy-lsp` that the editor offers for the first minutes. Key names: Tool, TOOLS. */

export type Tool = keyof typeof TOOLS;

/** `opens`: the file that it writes, relative to the folder it runs in. */
export const TOOLS = {
  demo: { command: "magpy.tryExample", title: "try an example", opens: "magpy-demo/train.py" },
  init: { command: "magpy.setUpProject", title: "set up this project", opens: "pyproject.toml" },
  doctor: { command: "magpy.checkInstallation", title: "check the installation", opens: undefined },
} as const;
