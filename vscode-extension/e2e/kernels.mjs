// Stories about kernels for a GPU that is not there. One function each; the first makes them, the others show them.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { endHover, expect, hover, lineOf, LONG_TIMEOUT, waitForTab, workers } from "./steps.mjs";
import { until } from "./vscode.mjs";

const BLOCK = "block/train.py";
const GELU = "return F.gelu(h)";
const NORM = "return self.norm(h)";

/** The texts of the marked lines in the editor of a group, 0 for the first. */
function marked(window, group) {
  return window.page.evaluate((number) => {
    const editor = document.querySelectorAll(".part.editor .editor-group-container")[number];
    const rows = [...(editor?.querySelectorAll(".view-overlays .cdr[class*=ced-]") ?? [])].map((one) => Math.round(one.getBoundingClientRect().top));
    const lines = [...(editor?.querySelectorAll(".view-lines .view-line") ?? [])];
    return lines.filter((line) => rows.includes(Math.round(line.getBoundingClientRect().top))).map((line) => line.textContent.replaceAll("\u00a0", " "));
  }, group);
}

function untilMarked(window, group, condition, description) {
  return until(async () => condition((await marked(window, group)).join("\n")), description);
}

/** Without kernels, the command offers to make them: the program is checked, its findings come first, its kernels last. */
export async function showsTriton(window, { workspace, server }) {
  const { page } = window;
  // Kernels that an earlier run has compiled are not compiled again: other sizes are other kernels.
  const program = join(workspace, BLOCK);
  writeFileSync(program, readFileSync(program, "utf8").replaceAll("64", String(64 + (Date.now() % 1_000))));
  await window.openFile(BLOCK);
  await window.goToLine(lineOf(workspace, BLOCK, GELU));
  await window.palette("MagPy: Show Triton for This Line");
  await page.locator(".notification-toast .monaco-button", { hasText: "H100 SXM" }).click();
  await window.status(/compiling kernels, \d of \d/, LONG_TIMEOUT);
  await window.summary(/Compiling kernels… \(click to cancel\)/).waitFor();
  await window.summary(/training loop: \d+ graphs? · 0 breaks/).waitFor(); // the findings are there
  await window.shot("32-compiling-kernels");
  await page.locator(".tab", { hasText: "Triton.py" }).waitFor({ timeout: LONG_TIMEOUT });
  await untilMarked(window, 1, (text) => /gelu/.test(text) && /@triton\.jit/.test(text), "the kernels of the line, marked");
  await untilMarked(window, 0, (text) => text.includes(GELU), "the line, marked");
  await window.lens(/H100 SXM: \d+ Triton kernels? and \d+ of (a library|libraries), at least [\d.]+ µs/).waitFor();
  await until(() => workers(server).length === 0, "the end of all processes");
  await window.shot("33-triton");
}

/** The cursor in one marks the lines of the other, and an edit moves them. */
export async function marksInStep(window, { workspace }) {
  const { page } = window;
  await page.locator(".part.editor .editor-group-container").nth(0).locator(".view-lines").click();
  await window.goToLine(lineOf(workspace, BLOCK, NORM));
  await untilMarked(window, 0, (text) => text.includes(NORM), "the line of the norm");
  await untilMarked(window, 1, (text) => /layer_norm/.test(text), "the kernel of the norm");
  await window.shot("34-line-to-kernel");
  const product = page.locator(".part.editor .editor-group-container").nth(1).locator(".view-line", { hasText: /extern_kernels\.mm/ }).first();
  await page.locator(".part.editor .editor-group-container").nth(1).locator(".view-lines").click();
  await page.keyboard.press("Control+Home");
  await product.click();
  await untilMarked(window, 0, (text) => text.includes("self.up(x)"), "the line of the product");
  await window.shot("35-kernel-to-line");
  await page.locator(".part.editor .editor-group-container").nth(0).locator(".view-lines").click();
  await window.goToLine(1);
  await page.keyboard.press("Home");
  await page.keyboard.type("# a line more\n");
  await window.goToLine(lineOf(workspace, BLOCK, NORM) + 1);
  await untilMarked(window, 0, (text) => text.includes(NORM), "the line of the norm, which has moved");
  await until(async () => {
    await page.keyboard.press("Control+z");
    return (await window.statusBar.locator(".codicon-history").count()) === 0;
  }, "the text of the run");
  // VS Code saves by itself after a while, so the file may have the line still; the next stories read it.
  await page.keyboard.press("Control+s");
  await until(() => !readFileSync(join(workspace, BLOCK), "utf8").startsWith("# a line more"), "the file as it was");
}

export async function hoversOverKernels(window) {
  await hover(window, undefined, GELU, "Triton kernel", "on H100 SXM", "at least", "registers", "lower bounds", "Show Triton");
  await window.shot("36-kernel-hover");
  await endHover(window);
}

export async function showsPtx(window, { workspace }) {
  const { page } = window;
  await window.goToLine(lineOf(workspace, BLOCK, GELU));
  await window.palette("MagPy: Show PTX for This Line");
  await waitForTab(window, /line \d+ PTX/);
  await until(async () => /\.target sm_90a|\.visible \.entry/.test(await window.text(".part.editor .view-line")), "the PTX");
  await window.shot("37-ptx");
  await window.goToLine(1);
  await window.palette("MagPy: Show PTX for This Line");
  await page.locator(".notification-toast", { hasText: /No kernel of train\.py computes anything of line 1; kernels compute something of lines \d/ }).waitFor();
  await window.palette("Notifications: Clear All Notifications", "Clear All Notifications");
}

/** The report has the kernels with their roofline. The window is left with one editor. */
export async function reportsKernels(window) {
  await window.palette("MagPy: Show Report");
  const frame = await window.frameWith("#kernels");
  await frame.locator("#kernels").scrollIntoViewIfNeeded();
  expect((await frame.locator("svg.roofline circle title").count()) > 2, "a dot for each kernel");
  await window.shot("38-kernels-report");
  await window.palette("View: Close All Editors", "Close All Editors");
}
