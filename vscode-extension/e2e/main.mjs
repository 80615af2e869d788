// End to end: the packaged extension in a real VS Code in a real Chromium, as a person uses it.
//
//   npm run e2e            examples/char_gpt and examples/early_exit with MAGPY_PYTHON (default: the repository's .venv)
//
// MAGPY_E2E_CACHE     where VS Code's server is installed (default: .cache/e2e of the repository)
// MAGPY_E2E_ARGS      the programs' arguments (default: --steps 30, as a whole training takes minutes)
// MAGPY_E2E_ONLY      the names of stories, to tell only those (they need not work without the ones before)
// MAGPY_E2E_PICTURES  =yes: those of the README and the walkthrough are taken from this run's screenshots
// Screenshots go to artifacts/e2e of the repository.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { findChromium, install } from "./install.mjs";
import * as projects from "./projects.mjs";
import * as stories from "./stories.mjs";
import { startServer, Window } from "./vscode.mjs";

const extension = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const repository = resolve(extension, "..");
const cache = resolve(process.env.MAGPY_E2E_CACHE ?? join(repository, ".cache", "e2e"));
const shots = join(repository, "artifacts", "e2e");
const python = resolve(process.env.MAGPY_PYTHON ?? join(repository, ".venv", "bin", "python"));
const only = process.env.MAGPY_E2E_ONLY?.split(",");
const args = (process.env.MAGPY_E2E_ARGS ?? "--steps 30").split(" ").filter(Boolean);

if (!existsSync(python)) {
  console.error(`There is no Python at ${python}: run \`make e2e\`, or set MAGPY_PYTHON to one that has MagPy installed.`);
  process.exit(2);
}
execFileSync("npm", ["run", "--silent", "package"], { cwd: extension, stdio: ["ignore", "ignore", "inherit"] });
const { node, entry } = install(cache);
const executablePath = findChromium();
rmSync(shots, { recursive: true, force: true });
mkdirSync(shots, { recursive: true });

// Copies: the programs write checkpoints, and the test must not touch the repository.
const workspace = join(cache, "workspace");
rmSync(workspace, { recursive: true, force: true });
mkdirSync(join(workspace, ".vscode"), { recursive: true });
for (const example of ["char_gpt", "early_exit"]) {
  cpSync(join(repository, "examples", example), join(workspace, example), {
    recursive: true,
    filter: (path) => !/__pycache__|\.pt$/.test(path),
  });
}
for (const program of ["endless", "ranks", "tiny"]) {
  cpSync(join(extension, "e2e", `${program}.py`), join(workspace, program, "train.py"));
}

const common = {
  node,
  entry,
  vsix: join(extension, "magpy.vsix"),
  env: { PYTHONPATH: repository, OMP_NUM_THREADS: process.env.OMP_NUM_THREADS ?? "1" },
  // How fast a busy machine runs what is compiled (MP401) is not what these stories are about.
  settings: { "magpy.interpreter": python, "magpy.args": args, "magpy.severity": { MP401: "information" } },
};
const browser = await chromium.launch({
  executablePath,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});
let failed = false;

async function within(name, trust, told) {
  const server = await startServer({ ...common, trust, folder: join(cache, `profile-${name}`) });
  let window;
  try {
    window = await Window.open(browser, { port: server.port, workspace, file: join(workspace, "char_gpt", "train.py"), shots });
    for (const story of told.filter(({ name }) => only === undefined || only.includes(name))) {
      const begin = Date.now();
      await story(window, { workspace, extension, tiny: join(extension, "e2e", "tiny.py"), server: server.pid });
      console.log(`ok    ${story.name} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
    }
  } catch (error) {
    failed = true;
    console.error(`FAIL  ${name}: ${error instanceof Error ? error.stack : String(error)}`);
    await window?.shot(`failed-${name}`);
  } finally {
    await window?.close();
    await server.stop();
  }
}

try {
  await within("trusted", true, [
    stories.opens, stories.checks, stories.listsNotes, stories.hoversOverNote, stories.marksGraphBreak,
    stories.hoversOverGraphBreak, stories.explains, stories.showsTree, stories.drawsGraph, stories.drawsReferences, stories.drawsTwoThousandNodes,
    stories.showsNodesOfLine, stories.showsGuards, stories.showsReport, stories.dropsStaleFinding, stories.followsSettings,
    stories.runsCompiled, stories.showsGeneratedCode, stories.cancels, stories.cancelsByLens, stories.cancelsByKey,
    stories.restarts, stories.compares, stories.checksEntrypointOnSave, stories.fixes,
    projects.checksTwoRanks, projects.checksNotebook, projects.keepsFoldersApart,
  ]);
  if (only === undefined || only.includes(stories.refusesUntrusted.name)) {
    await within("restricted", false, [stories.refusesUntrusted]);
  }
} finally {
  await browser.close();
}
if (!failed && process.env.MAGPY_E2E_PICTURES === "yes") {
  for (const [shot, picture] of [["06-graph-break", "check"], ["14-graph", "graph"], ["11-table", "compiled"]]) {
    cpSync(join(shots, `${shot}.png`), join(extension, "images", `${picture}.png`));
  }
}
console.log(failed ? "end to end: FAILED" : `end to end: passed, screenshots in ${shots}`);
process.exitCode = failed ? 1 : 0;
