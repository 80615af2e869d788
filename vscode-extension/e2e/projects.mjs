// Stories about a notebook, a program of several processes, and several folders in one window. One function each.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { endHover, expect, hover, lineOf, LONG_TIMEOUT, workers } from "./steps.mjs";
import { until } from "./vscode.mjs";

const NOTEBOOK = "notes/tiny.ipynb";
const RANKS = "ranks/train.py";
const BREAK = "y.sum() > 0";

/** tiny.py as a notebook of a Markdown cell and two code cells. */
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

function writeTo(workspace, path, text) {
  mkdirSync(dirname(join(workspace, path)), { recursive: true });
  writeFileSync(join(workspace, path), text);
}

function writeSettings(workspace, values) {
  writeTo(workspace, ".vscode/settings.json", JSON.stringify(values));
}

/** A notebook's cells run as one script; findings are in the cells, move with edits and disappear when their line changes. */
export async function checksNotebook(window, { workspace, tiny, server }) {
  const { page } = window;
  writeTo(workspace, NOTEBOOK, notebookOf(readFileSync(tiny, "utf8")));
  await window.openFile(NOTEBOOK);
  await page.locator(".notebook-editor .view-line", { hasText: BREAK }).click();
  await window.palette("MagPy: Check This File");
  await window.status(/checking/);
  await window.status(/\d warnings?/, LONG_TIMEOUT);
  await window.squiggle("warning", BREAK);
  await hover(window, "warning", BREAK, "MP101", /value = (True|False)/, "Why:", "What to do:", "torch.where", /region Net|net: Net/);
  await window.shot("26-notebook");
  await endHover(window);
  expect(workers(server).length === 0, "no process of the program is left");
  await page.locator(".notebook-editor .view-line", { hasText: BREAK }).click();
  await page.keyboard.press("Home");
  await page.keyboard.type("# no more ");
  await page.locator(".notebookOverlay .squiggly-warning").waitFor({ state: "detached" });
  await window.statusBar.locator(".codicon-history").waitFor();
  await until(async () => {
    await page.keyboard.press("Control+z");
    return (await page.locator(".notebookOverlay .squiggly-warning").count()) > 0;
  }, "the finding again, after the edit is undone");
  await window.statusBar.locator(".codicon-history").waitFor({ state: "detached" });
  await window.palette("File: Save", "File: Save");
  await window.palette("View: Close Editor", "Close Editor");
}

/** A configured entrypoint of two processes is one run; a finding of only one rank names that rank. */
export async function checksTwoRanks(window, { workspace, server }) {
  const { page } = window;
  writeSettings(workspace, { "magpy.entrypoints": [{ name: "two ranks", program: RANKS, nproc: 2, args: [] }] });
  await window.openFile(RANKS);
  await window.goToEnd();
  await window.lens("Check two ranks").waitFor(); // the server has the settings
  await window.palette("MagPy: Check Entrypoint…");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "two ranks" }).click();
  await window.lens(/Checking… \(click to cancel\)/).waitFor();
  await window.lens(/^Check$/).waitFor({ timeout: LONG_TIMEOUT });
  await window.status(/\d warnings/);
  await window.squiggle("warning", BREAK);
  const both = await window.problem("MP101", `Ln ${lineOf(workspace, RANKS, BREAK)}, `);
  await both.waitFor();
  expect(!(await both.innerText()).includes("rank"), "a finding of both ranks names no rank");
  await (await window.problem("MP101", "only rank 1", `Ln ${lineOf(workspace, RANKS, "y.max() > 0")}, `)).waitFor();
  await window.shot("27-two-ranks");
  await window.hidePanel();
  await hover(window, "warning", "y.max() > 0", "MP101", "only rank 1");
  await endHover(window);
  await until(() => workers(server).length === 0, "the end of the launcher and of both ranks");
  writeSettings(workspace, {});
}

/** Two folders in one window have separate settings, and a change applies to one of them. The window is left in another workspace. */
export async function keepsFoldersApart(window, { workspace, tiny }) {
  const { page } = window;
  const program = readFileSync(tiny, "utf8");
  const roots = join(workspace, "roots");
  const severities = { north: "error", south: "information" };
  const entrypoint = (name) => ({ "magpy.entrypoints": [{ name: `the ${name}`, program: "train.py" }] });
  for (const [name, severity] of Object.entries(severities)) {
    writeTo(roots, `${name}/train.py`, program.replace("torch.manual_seed(0)", `print("${name}")\n    torch.manual_seed(0)`));
    writeSettings(join(roots, name), { "magpy.severity": { MP101: severity }, "magpy.args": [], "magpy.steps": name === "north" ? 2 : 5, ...entrypoint(name) });
  }
  writeTo(roots, "pair.code-workspace", JSON.stringify({ folders: [{ path: "north" }, { path: "south" }] }));
  await window.goToWorkspace({ workspace: join(roots, "pair.code-workspace"), file: join(roots, "north", "train.py"), root: "south" });
  await window.status(/^\s*MagPy\s*$/);
  for (const [name, severity, steps] of [["north", "error", 2], ["south", "info", 5]]) {
    await window.openFile(`${name}/train.py`);
    await window.goToEnd();
    await window.lens(`Check the ${name}`).waitFor(); // the server has the folder's settings
    await window.palette("MagPy: Check This File");
    await window.lens(/Checking… \(click to cancel\)/).waitFor();
    await window.lens(/^Check$/).waitFor({ timeout: LONG_TIMEOUT });
    await window.status(/1 error/); // as many as the Problems view has of both
    await window.goToLine(lineOf(roots, `${name}/train.py`, BREAK));
    await window.squiggle(severity, BREAK);
    await (await window.problem("MP101", `${steps} of ${steps} steps`)).waitFor();
    await window.hidePanel();
  }
  writeSettings(join(roots, "south"), { "magpy.severity": { MP101: "error" } });
  await window.squiggle("error", BREAK); // at once, without another run
  writeSettings(join(roots, "north"), { "magpy.severity": { MP101: "off" } });
  await until(async () => {
    const rows = page.locator(".markers-panel .monaco-list-row", { hasText: "MP101" });
    await window.problem("MP101");
    return (await rows.count()) === 1;
  }, "a finding in one folder only");
  await window.shot("28-two-folders");
}
