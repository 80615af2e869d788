// Stories about the first minutes: the walkthrough, and the commands that it offers. One function each.
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, lineOf, LONG_TIMEOUT, workers } from "./steps.mjs";

const CUT = "logits.abs().flatten().tolist()";

/** Every step has its page or picture. */
export async function walksThrough(window) {
  const { page } = window;
  await window.palette("Welcome: Open Walkthrough...", "Open Walkthrough");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Get started with MagPy" }).click();
  const steps = page.locator(".gettingStartedContainer .getting-started-step");
  await steps.first().waitFor();
  const pages = { "See it on an example": "magpy-lsp demo", "Set up your project": "magpy-lsp init", "Keep it that way": "--baseline" };
  for (const [title, text] of Object.entries(pages)) {
    await steps.filter({ hasText: title }).click();
    await window.frameWith(`code:has-text("${text}")`);
    await window.shot(`40-walkthrough-${title.split(" ")[0].toLowerCase()}`);
  }
  expect((await steps.count()) === 9, "nine steps");
  await window.palette("View: Close Editor", "Close Editor");
}

/** The example is copied, opened and checked, and the cursor is at its finding. */
export async function triesTheExample(window, { workspace, server }) {
  await window.palette("MagPy: Try an Example");
  await window.waitForActive("magpy-demo/train.py");
  await window.status(/\d warnings?/, LONG_TIMEOUT);
  const line = lineOf(workspace, "magpy-demo/train.py", CUT);
  await window.page.locator(".statusbar-item", { hasText: `Ln ${line}, ` }).waitFor();
  await window.squiggle("warning", CUT);
  await window.shot("41-example");
  expect(workers(server).length === 0, "no process of the example is left");
  await window.palette("View: Close Editor", "Close Editor");
  rmSync(join(workspace, "magpy-demo"), { recursive: true });
}

/** `init` finds the programs of the workspace and opens the table that it has written. */
export async function setsUpTheProject(window, { workspace }) {
  mkdirSync(join(workspace, ".git")); // the workflow goes into the repository, which would be MagPy's own
  await window.palette("MagPy: Set Up This Project");
  await window.page.locator(".quick-input-list .monaco-list-row", { hasText: ".github/workflows" }).click(); // it asks first
  await window.waitForActive("pyproject.toml");
  const table = readFileSync(join(workspace, "pyproject.toml"), "utf8");
  expect(/\[\[tool\.magpy\.entrypoints\]\]/.test(table) && table.includes("char_gpt/train.py"), "the programs are in the table");
  expect(existsSync(join(workspace, ".github", "workflows", "magpy.yml")), "the workflow is written");
  await window.shot("42-set-up");
  await window.hidePanel();
  await window.palette("View: Close Editor", "Close Editor");
  rmSync(join(workspace, "pyproject.toml"));
  rmSync(join(workspace, ".github"), { recursive: true });
  rmSync(join(workspace, ".git"), { recursive: true });
}
