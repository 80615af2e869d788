// What a person does with the extension, one function each. They build on each other, in the order main.mjs calls them.
import { until } from "./vscode.mjs";

const LONG = 420_000; // compiling, on a slow machine with other work
const SQUIGGLES = ".monaco-editor .cdr.squiggly-warning, .monaco-editor .cdr.squiggly-info";

function expect(truth, what) {
  if (!truth) {
    throw new Error(`expected: ${what}`);
  }
}

export async function opens(window) {
  await window.status(/^\s*MagPy\s*$/);
  await window.goToEnd();
  await window.lens("Check").waitFor();
  await window.lens("Run compiled").waitFor();
  await window.shot("01-opened");
}

export async function checks(window) {
  await window.clickLens("Check");
  await window.status(/checking/);
  await window.shot("02-checking");
  await window.status(/(warning|error|^\s*MagPy\s*$)/, LONG);
  await window.lens(/^Check$/).waitFor();
  await window.page.locator(SQUIGGLES).first().waitFor();
  await window.seek(".codelens-decoration", /graphs? · \d+ break/, "PageUp");
  await window.shot("03-checked");
}

export async function listsProblems(window) {
  const { page } = window;
  await page.keyboard.press("Control+Shift+M");
  const warning = page.locator(".markers-panel .monaco-list-row", { hasText: /MP1\d\d/ }).first();
  await warning.waitFor();
  await warning.dblclick(); // puts the cursor there and the editor's window on it
  await page.locator(".monaco-editor .cdr.squiggly-warning").first().waitFor();
  await window.shot("04-problems");
  await page.keyboard.press("Control+j");
  await page.locator(".markers-panel").waitFor({ state: "hidden" });
}

export async function hovers(window) {
  const { page } = window;
  const squiggle = page.locator(".monaco-editor .cdr.squiggly-warning").first();
  const box = await squiggle.boundingBox();
  expect(box !== null, "a squiggle on the screen");
  await page.mouse.move(box.x + Math.min(12, box.width / 2), box.y + 6);
  const hover = page.locator(".monaco-hover:visible").first();
  await until(async () => {
    const text = await hover.innerText().catch(() => "");
    return /MP1\d\d/.test(text) && /Why:/.test(text) && /What to do:/.test(text);
  }, "the hover's text");
  await window.shot("05-hover");
  await page.mouse.move(5, 5);
  await page.keyboard.press("Escape");
}

export async function explains(window, { file }) {
  const { page } = window;
  // The cursor is on the finding that was chosen in the list of problems.
  await window.palette("MagPy: Explain Code");
  await page.locator(".tab", { hasText: /MP1\d\d/ }).first().waitFor();
  await until(async () => {
    for (const frame of page.frames()) {
      if (/What happened/.test(await frame.locator("body").innerText().catch(() => ""))) {
        return true;
      }
    }
    return false;
  }, "the code's page");
  await window.shot("06-explained");
  await window.palette("View: Close Editor", "Close Editor");
  await window.openFromExplorer(file.split("/").at(-1)); // the finding may have been in another file
  await window.goToEnd();
}

export async function runsCompiled(window) {
  await window.clickLens("Run compiled");
  await window.status(/running/);
  await until(async () => /Run compiled/.test(await window.outputText()), "the output view");
  await window.shot("07-running");
  await window.status(/^(?!.*running)/, LONG);
  expect(!/failed/.test(await window.statusBar.innerText()), "the run did not fail");
  await until(async () => /Found|No findings/.test(await window.outputText()), "the report");
  await window.goToEnd(); // the panel has covered it
  await window.lens(/^Run compiled$/).waitFor();
  await window.shot("08-run");
  // The whole height for the output, to see the table above the reasons for recompiles.
  await window.palette("View: Toggle Maximized Panel", "Toggle Maximized Panel");
  await until(async () => /eager ms/.test(await window.outputText()), "the table of regions");
  await window.shot("09-table");
  await window.palette("View: Toggle Maximized Panel", "Toggle Maximized Panel");
}

export async function cancels(window) {
  await window.palette("MagPy: Run Compiled");
  await window.status(/running/);
  await window.palette("MagPy: Cancel");
  await window.status(/cancelled/);
  await window.shot("10-cancelled");
}

export async function refusesUntrusted(window) {
  const { page } = window;
  await page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor();
  expect((await page.locator(".codelens-decoration a").count()) === 0, "no lenses in restricted mode");
  await page.keyboard.press("F1");
  const input = page.locator(".quick-input-widget input.input");
  await input.fill(">MagPy: Check");
  await page.locator(".quick-input-list").waitFor();
  const offered = await page.locator(".quick-input-list .monaco-list-row", { hasText: "MagPy: Check" }).count();
  if (offered > 0) {
    await page.keyboard.press("Enter");
  }
  await window.shot("11-restricted");
  expect((await window.statusBar.count()) === 0, "no MagPy in the status bar of a restricted window");
  expect((await page.locator(".squiggly-warning, .squiggly-info").count()) === 0, "nothing was run");
}
