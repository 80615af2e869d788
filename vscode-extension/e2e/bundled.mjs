// Stories about what the extension brings: the interpreter has torch, and nothing of MagPy.
import { check, expect, lineOf, workers } from "./steps.mjs";

const EARLY_EXIT = "early_exit/train.py";
const BREAK = "confidence.item() > self.threshold";

/** A message says that the interpreter does not start, and leads to a list of others. */
export async function choosesInterpreter(window, { python }) {
  const { page } = window;
  const toast = page.locator(".notification-toast", { hasText: "MagPy can't start the Python /no/such/python (from magpy.interpreter)" });
  await toast.waitFor();
  await window.status(/^\s*MagPy\s*$/); // with an error's icon
  await window.shot("61-no-interpreter");
  await toast.locator(".monaco-button", { hasText: "Choose Interpreter" }).click();
  const rows = page.locator(".quick-input-list .monaco-list-row");
  await rows.filter({ hasText: "PATH" }).first().waitFor();
  await window.shot("62-interpreters");
  await rows.filter({ hasText: "Enter a path" }).click();
  await page.locator(".quick-input-widget input.input").fill(python);
  await page.keyboard.press("Enter");
  await window.statusBar.locator(".codicon-circuit-board").waitFor(); // ready
}

/** From the VSIX to the first squiggle: open a file, Check. */
export async function servesWithTorchAlone(window, { workspace, server }) {
  await window.status(/^\s*MagPy\s*$/);
  await window.openFile(EARLY_EXIT);
  await window.goToEnd();
  await check(window);
  await window.status(/1 warning/);
  await window.goToLine(lineOf(workspace, EARLY_EXIT, BREAK));
  await window.squiggle("warning", BREAK);
  await window.shot("60-torch-alone");
  expect(workers(server).length === 0, "no process of the program is left");
}
