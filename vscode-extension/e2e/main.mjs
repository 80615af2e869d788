// End-to-end tests: the packaged extension in VS Code in Chromium, operated as by a user.
//
//   npm run e2e            examples/char_gpt and examples/early_exit with MAGPY_PYTHON (default: the repository's .venv)
//
// MAGPY_E2E_CACHE     where VS Code's server is installed (default: .cache/e2e of the repository)
// MAGPY_E2E_ARGS      the programs' arguments (default: --steps 30, because a complete training takes minutes)
// MAGPY_E2E_ONLY      names of stories, separated by commas, to run only those (a story may depend on earlier ones)
// MAGPY_E2E_PICTURES  =yes: the pictures of the README, the documentation and the walkthrough are replaced by this run's
//                     screenshots (only the stories with pictures run); some show times, so only on a quiet machine
// Screenshots go to artifacts/e2e of the repository.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import * as bundled from "./bundled.mjs";
import * as firstMinutes from "./firstMinutes.mjs";
import { findChromium, install } from "./install.mjs";
import * as kernels from "./kernels.mjs";
import { PICTURED, replacePictures } from "./pictures.mjs";
import * as projects from "./projects.mjs";
import { showsRunView } from "./runView.mjs";
import * as stories from "./stories.mjs";
import { startServer, Window } from "./vscode.mjs";

const extension = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const repository = resolve(extension, "..");
const cache = resolve(process.env.MAGPY_E2E_CACHE ?? join(repository, ".cache", "e2e"));
const shots = join(repository, "artifacts", "e2e");
const python = resolve(process.env.MAGPY_PYTHON ?? join(repository, ".venv", "bin", "python"));
const pictures = process.env.MAGPY_E2E_PICTURES === "yes";
const only = process.env.MAGPY_E2E_ONLY?.split(",") ?? (pictures ? PICTURED : undefined);
const args = (process.env.MAGPY_E2E_ARGS ?? "--steps 30").split(" ").filter(Boolean);

if (!existsSync(python)) {
  console.error(`There is no Python at ${python}: run \`make e2e\`, or set MAGPY_PYTHON to a Python that has MagPy installed.`);
  process.exit(2);
}
execFileSync("npm", ["run", "--silent", "package"], { cwd: extension, stdio: ["ignore", "ignore", "inherit"] });
const { node, entry } = install(cache);
const executablePath = findChromium();
rmSync(shots, { recursive: true, force: true });
mkdirSync(shots, { recursive: true });

// Copies, because the programs write checkpoints and the tests must not change the repository.
const workspace = join(cache, "workspace");
rmSync(workspace, { recursive: true, force: true });
mkdirSync(join(workspace, ".vscode"), { recursive: true });
for (const example of ["char_gpt", "early_exit"]) {
  cpSync(join(repository, "examples", example), join(workspace, example), {
    recursive: true,
    filter: (path) => !/__pycache__|\.pt$/.test(path),
  });
}
for (const program of ["block", "endless", "ranks", "tiny", "training", "wrong"]) {
  cpSync(join(extension, "e2e", `${program}.py`), join(workspace, program, "train.py"));
}

const common = {
  node,
  entry,
  vsix: join(extension, "magpy.vsix"),
  env: { PYTHONPATH: repository, OMP_NUM_THREADS: process.env.OMP_NUM_THREADS ?? "1" },
  // Whether compiled code is slower (MP401) depends on the load of the machine, which must not change the results.
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
let alone; // the Python that has torch, and nothing of MagPy

/** A new environment that has torch, and nothing of MagPy. */
function pythonWithTorchAlone() {
  const folder = join(cache, "torch-alone");
  rmSync(folder, { recursive: true, force: true });
  const made = execFileSync(python, ["-m", "tests.environments", "torch-only", folder], { cwd: repository, encoding: "utf8" });
  return made.trim();
}

async function runStories(name, trust, selected, changes = {}) {
  const server = await startServer({ ...common, ...changes, trust, folder: join(cache, `profile-${name}`) });
  let window;
  try {
    window = await Window.open(browser, { port: server.port, workspace, file: join(workspace, "char_gpt", "train.py"), shots });
    for (const story of selected.filter(({ name }) => only === undefined || only.includes(name))) {
      const start = Date.now();
      await story(window, { workspace, extension, python: alone, tiny: join(extension, "e2e", "tiny.py"), server: server.pid });
      console.log(`ok    ${story.name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
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
  await runStories("trusted", true, [
    stories.opens, stories.checks, stories.showsNoFacts, stories.hoversOverFact, stories.marksGraphBreak,
    stories.hoversOverGraphBreak, stories.explains, stories.saysWhyNotCompiled, stories.showsTree, stories.drawsGraph, stories.drawsReferences, stories.drawsTwoThousandNodes,
    stories.showsNodesOfLine, stories.showsGuards, stories.showsReport, stories.dropsStaleFinding, stories.followsSettings,
    stories.runsCompiled, stories.showsGeneratedCode, showsRunView, stories.cancels, stories.cancelsByLens, stories.cancelsByKey,
    kernels.showsTriton, kernels.marksInStep, kernels.hoversOverKernels, kernels.showsPtx, kernels.reportsKernels,
    stories.restarts, stories.keepsFindingsOnReload, stories.compares, stories.checksEntrypointOnSave, stories.fixes, stories.opensReproducer,
    firstMinutes.walksThrough, firstMinutes.triesTheExample, firstMinutes.setsUpTheProject,
    projects.checksTwoRanks, projects.checksNotebook, projects.keepsFoldersApart,
  ]);
  const torchAlone = [bundled.choosesInterpreter, bundled.servesWithTorchAlone, firstMinutes.triesTheExample];
  if (only === undefined || only.includes(bundled.servesWithTorchAlone.name)) {
    alone = pythonWithTorchAlone();
    await runStories("torch-alone", true, torchAlone, {
      env: { ...common.env, PYTHONPATH: "" },
      settings: { ...common.settings, "magpy.interpreter": "/no/such/python" },
    });
    rmSync(join(workspace, ".vscode", "settings.json"), { force: true });
  }
  if (only === undefined || only.includes(stories.refusesUntrusted.name)) {
    await runStories("restricted", false, [stories.refusesUntrusted]);
  }
  if (!failed && pictures) {
    await replacePictures({ browser, python, env: common.env, workspace, shots, extension, repository, entry });
  }
} finally {
  await browser.close();
}
console.log(failed ? "end to end: FAILED" : `end to end: passed, screenshots in ${shots}`);
process.exitCode = failed ? 1 : 0;
