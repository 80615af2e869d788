// Programs that are more than a file: a notebook, several folders in one window, several processes. One function each.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { endHover, expect, hover, lineOf, LONG, workers } from "./steps.mjs";
import { until } from "./vscode.mjs";

const NOTEBOOK = "notes/tiny.ipynb";
const RANKS = "ranks/train.py";
const BREAK = "y.sum() > 0";

/** The tiny program as a notebook of three cells, one of them text. */
function notebookOf(program) {
  const [classes, main] = program.split('if __name__ == "__main__":\n');
  const lines = (text) => text.trim().split(/(?<=\n)/);
  const code = (text) => ({ cell_type: "code", metadata: {}, execution_count: null, outputs: [], source: lines(text) });
  const cells = [
    { cell_type: "markdown", metadata: {}, source: ["# A model with a graph break"] },
    code(classes), code(`%matplotlib inline\n${main.replaceAll(/^ {4}/gm, "")}`),
  ];
  const metadata = { language_info: { name: "python" }, kernelspec: { name: "python3", display_name: "Python 3", language: "python" } };
  return JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 2 }, null, 1);
}

function put(workspace, path, text) {
  mkdirSync(dirname(join(workspace, path)), { recursive: true });
  writeFileSync(join(workspace, path), text);
}

function settings(workspace, values) {
  put(workspace, ".vscode/settings.json", JSON.stringify(values));
}

/** Its cells run as one script; what is found is in the cells, moves with edits and goes with its line. */
export async function checksNotebook(window, { workspace, tiny, server }) {
  const { page } = window;
  put(workspace, NOTEBOOK, notebookOf(readFileSync(tiny, "utf8")));
  await window.openFile(NOTEBOOK);
  await page.locator(".notebook-editor .view-line", { hasText: BREAK }).click();
  await window.palette("MagPy: Check This File");
  await window.status(/checking/);
  await window.status(/1 warning/, LONG);
  await window.squiggle("warning", BREAK);
  await hover(window, "warning", BREAK, "MP101", /outcome = (True|False)/, "Why:", "What to do:", "torch.where", /region Net|net: Net/);
  await window.shot("26-notebook");
  await endHover(window);
  expect(workers(server).length === 0, "the end of the program's processes");
  await page.locator(".notebook-editor .view-line", { hasText: BREAK }).click();
  await page.keyboard.press("Home");
  await page.keyboard.type("# no more ");
  await page.locator(".notebookOverlay .squiggly-warning").waitFor({ state: "detached" });
  await window.statusBar.locator(".codicon-history").waitFor();
  await until(async () => {
    await page.keyboard.press("Control+z");
    return (await page.locator(".notebookOverlay .squiggly-warning").count()) > 0;
  }, "the finding again after undoing the edit");
  await window.statusBar.locator(".codicon-history").waitFor({ state: "detached" });
  await window.palette("File: Save", "File: Save");
  await window.palette("View: Close Editor", "Close Editor");
}

/** A configured entrypoint of two processes: one run, what only one of them has is told as that. */
export async function checksTwoRanks(window, { workspace, server }) {
  const { page } = window;
  settings(workspace, { "magpy.entrypoints": [{ name: "two ranks", program: RANKS, nproc: 2, args: [] }] });
  await window.openFile(RANKS);
  await window.goToEnd();
  await window.lens("Check two ranks").waitFor(); // the settings are known
  await window.palette("MagPy: Check Entrypoint…");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "two ranks" }).click();
  await window.lens(/Checking… \(click to cancel\)/).waitFor();
  await window.lens(/^Check$/).waitFor({ timeout: LONG });
  await window.status(/2 warnings/);
  await window.squiggle("warning", BREAK);
  const both = await window.problem("MP101", `Ln ${lineOf(workspace, RANKS, BREAK)}, `);
  await both.waitFor();
  expect(!(await both.innerText()).includes("rank"), "a finding of both ranks names none");
  await (await window.problem("MP101", "only rank 1", `Ln ${lineOf(workspace, RANKS, "y.max() > 0")}, `)).waitFor();
  await window.shot("27-two-ranks");
  await window.hidePanel();
  await hover(window, "warning", "y.max() > 0", "MP101", "only rank 1");
  await endHover(window);
  await until(() => workers(server).length === 0, "the end of the launcher and of both ranks");
  settings(workspace, {});
}

/** Two folders in one window, each with settings of its own, changed for one of them. The window shows another workspace then. */
export async function keepsFoldersApart(window, { workspace, tiny }) {
  const { page } = window;
  const program = readFileSync(tiny, "utf8");
  const roots = join(workspace, "roots");
  const severities = { north: "error", south: "information" };
  const entrypoint = (name) => ({ "magpy.entrypoints": [{ name: `the ${name}`, program: "train.py" }] });
  for (const [name, severity] of Object.entries(severities)) {
    put(roots, `${name}/train.py`, program.replace("torch.manual_seed(0)", `print("${name}")\n    torch.manual_seed(0)`));
    settings(join(roots, name), { "magpy.severity": { MP101: severity }, "magpy.args": [], "magpy.steps": name === "north" ? 2 : 5, ...entrypoint(name) });
  }
  put(roots, "pair.code-workspace", JSON.stringify({ folders: [{ path: "north" }, { path: "south" }] }));
  await window.goToWorkspace({ workspace: join(roots, "pair.code-workspace"), file: join(roots, "north", "train.py"), root: "south" });
  await window.status(/^\s*MagPy\s*$/);
  for (const [name, status, severity, steps] of [["north", /1 error/, "error", 2], ["south", /^\s*MagPy\s*$/, "info", 5]]) {
    await window.openFile(`${name}/train.py`);
    await window.goToEnd();
    await window.lens(`Check the ${name}`).waitFor(); // the folder's settings are known
    await window.palette("MagPy: Check This File");
    await window.lens(/Checking… \(click to cancel\)/).waitFor();
    await window.lens(/^Check$/).waitFor({ timeout: LONG });
    await window.status(status);
    await window.goToLine(lineOf(roots, `${name}/train.py`, BREAK));
    await window.squiggle(severity, BREAK);
    await (await window.problem("MP101", `${steps} of ${steps} steps`)).waitFor();
    await window.hidePanel();
  }
  settings(join(roots, "south"), { "magpy.severity": { MP101: "error" } });
  await window.squiggle("error", BREAK); // at once, without another run
  settings(join(roots, "north"), { "magpy.severity": { MP101: "off" } });
  await until(async () => {
    const rows = page.locator(".markers-panel .monaco-list-row", { hasText: "MP101" });
    await window.problem("MP101");
    return (await rows.count()) === 1;
  }, "the finding of one folder only");
  await window.shot("28-two-folders");
}
