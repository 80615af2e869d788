// The run view: open beside the code while a compiled run goes on, and one line in the status bar after it.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, LONG_TIMEOUT } from "./steps.mjs";
import { until } from "./vscode.mjs";

const TRAINING = "training/train.py";

async function close(window) {
  const tab = window.page.locator(".tab", { hasText: "MagPy: Run" });
  await tab.click({ button: "middle" }); // the other button moves the focus into the webview, which takes its time
  await tab.waitFor({ state: "detached" });
}

export async function showsRunView(window, { workspace }) {
  const { page } = window;
  const settings = join(workspace, ".vscode", "settings.json");
  const finish = join(workspace, "training", "finish");
  const isPictured = process.env.MAGPY_E2E_PICTURES === "yes";
  const backend = isPictured ? {} : { "magpy.backend": "aot_eager" }; // compiles no C++, and gains little
  writeFileSync(settings, JSON.stringify({ ...backend, "magpy.revealOutput": "never" }));
  rmSync(finish, { force: true });
  await window.openFile(TRAINING);
  await window.goToEnd();
  await window.clickLens("Run compiled");
  await window.clickLens("Show run view");
  const frame = await window.frameWith("#bars");
  const text = () => frame.locator("body").innerText();
  await until(async () => /step [\d,]+, loss 0?\.?\d/.test(await text()), "the step and the loss", LONG_TIMEOUT);
  await until(async () => /now [\d.,]+ steps\/s[^]*[\d.,]+ steps\/s compiled, [\d.,]+ eager: (\d+\.\d\dx|not certain)/.test(await text()), "speeds", LONG_TIMEOUT);
  await until(async () => (await frame.locator("#bars tbody tr:visible").count()) > 1, "the shares of the step");
  if (isPictured) {
    await until(async () => /saved [\d.]+ s so far/.test(await text()), "a gain", LONG_TIMEOUT);
  }
  expect(/Share of the eager step/.test(await text()), "what the bars are of");
  const width = await frame.locator(".bar").first().evaluate((bar) => bar.getBoundingClientRect().width);
  expect(width > 10, "a bar as wide as the largest share");
  await window.waitForActive(TRAINING); // it took no focus
  await page.keyboard.press("Control+Home");
  await page.locator(".statusbar-item", { hasText: "Ln 1, Col 1" }).waitFor();
  await window.shot("40-run-view");
  const first = await text();
  await until(async () => (await text()) !== first, "other figures");
  writeFileSync(finish, "");
  await window.status(/MagPy: (\d+ warnings?, )?(\d+\.\d\dx, )?(saved|lost|neither)/, LONG_TIMEOUT);
  await frame.locator("body[data-state=done]").waitFor();
  await frame.locator("#report:visible").waitFor();
  expect((await frame.locator("#cancel:visible").count()) === 0, "nothing to cancel");
  await close(window);
  await window.statusBar.click(); // opens it again
  await (await window.frameWith("#bars")).locator("body[data-state=done]").waitFor();
  await window.shot("41-run-view-ended");
  await close(window);
  writeFileSync(settings, "{}");
}
