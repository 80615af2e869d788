// What a person does with the extension, one function each. They build on each other, in the order main.mjs calls them.
import { until } from "./vscode.mjs";

const LONG = 240_000;
const SQUIGGLES = ".monaco-editor .cdr.squiggly-warning, .monaco-editor .cdr.squiggly-info";

function expect(truth, what) {
  if (!truth) {
    throw new Error(`expected: ${what}`);
  }
}

export async function opens(window) {
  await window.status(/^\s*MagPy\s*$/);
  await window.palette("Go to Line", "Go to Line");
  await window.page.locator(".quick-input-widget input.input").fill(":9999");
  await window.page.keyboard.press("Enter");
  await window.lens("Check").waitFor();
  await window.lens("Run compiled").waitFor();
  await window.shot("01-opened");
}

export async function checks(window) {
  await window.clickLens("Check");
  await window.status(/checking/);
  await window.shot("02-checking");
  await window.status(/(warning|note|error|^\s*MagPy\s*$)/, LONG);
  await window.status(/^(?!.*checking)/, LONG);
  await window.page.locator(SQUIGGLES).first().waitFor();
  await window.shot("03-checked");
}

export async function hovers(window) {
  const { page } = window;
  const squiggle = page.locator(SQUIGGLES).first();
  const box = await squiggle.boundingBox();
  expect(box !== null, "a squiggle on the screen");
  await page.mouse.move(box.x + Math.min(12, box.width / 2), box.y + 6);
  const hover = page.locator(".monaco-hover:visible").first();
  await until(async () => /MP\d{3}[\s\S]*(What to do|Why)/.test(await hover.innerText().catch(() => "")), "the hover's text");
  await window.shot("04-hover");
  await page.mouse.move(5, 5);
  await page.keyboard.press("Escape");
}

export async function listsProblems(window) {
  const { page } = window;
  await page.keyboard.press("Control+Shift+M");
  await page.locator(".markers-panel .monaco-list-row", { hasText: /MP\d{3}/ }).first().waitFor();
  await window.shot("05-problems");
  await page.keyboard.press("Control+Shift+M");
}

export async function explains(window) {
  const { page } = window;
  await window.palette("MagPy: Explain Code");
  // With the cursor on no finding a list is offered; with the cursor on one its page opens at once.
  const input = page.locator(".quick-input-widget:visible input.input");
  await input.waitFor();
  await input.fill("MP102");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "MP102" }).first().click();
  await page.locator(".tab", { hasText: "MP102" }).first().waitFor();
  await until(async () => {
    for (const frame of page.frames()) {
      if (/What happened/.test(await frame.locator("body").innerText().catch(() => ""))) {
        return true;
      }
    }
    return false;
  }, "the page of MP102");
  await window.shot("06-explained");
  await page.keyboard.press("Control+w");
}

export async function runsCompiled(window) {
  await window.clickLens("Run compiled");
  await window.status(/running/);
  await until(async () => /Run compiled/.test(await window.outputText()), "the output view");
  await window.shot("07-running");
  await window.status(/^(?!.*running)/, LONG);
  await until(async () => /eager ms/.test(await window.outputText()), "the table of regions");
  await window.shot("08-run");
  expect(!/failed/.test(await window.statusBar.innerText()), "the run did not fail");
}

export async function cancels(window) {
  await window.palette("MagPy: Run Compiled");
  await window.status(/running/);
  await window.palette("MagPy: Cancel");
  await window.status(/cancelled/);
  await window.shot("09-cancelled");
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
  await window.shot("10-restricted");
  expect((await window.statusBar.count()) === 0, "no MagPy in the status bar of a restricted window");
  expect((await page.locator(".squiggly-warning, .squiggly-info").count()) === 0, "nothing was run");
}
