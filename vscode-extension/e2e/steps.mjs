// What several stories do. Exports: LONG, expect, lineOf, workers, check, hover, endHover, tab.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { descendants, languageServers } from "./processes.mjs";
import { until } from "./vscode.mjs";

export const LONG = 420_000; // compiling, on a slow machine with other work

export function expect(truth, what) {
  if (!truth) {
    throw new Error(`expected: ${what}`);
  }
}

/** The number of the first line of a file with this text. */
export function lineOf(workspace, file, text) {
  const line = readFileSync(join(workspace, file), "utf8").split("\n").findIndex((one) => one.includes(text)) + 1;
  expect(line > 0, `${text} in ${file}`);
  return line;
}

/** The processes below the language server, which has none but those of runs. */
export function workers(server) {
  const [only, ...more] = languageServers(server);
  expect(only !== undefined && more.length === 0, "one language server");
  return descendants(only);
}

/** Check by its lens, until the result is there. */
export async function check(window, shot) {
  await window.clickLens(/^Check$/);
  await window.lens(/Checking… \(click to cancel\)/).waitFor();
  if (shot) {
    await window.shot(shot);
  }
  await window.lens(/^Check$/).waitFor({ timeout: LONG });
}

/** Hovers over underlined code and waits for a text that has all these. */
export async function hover(window, severity, code, ...texts) {
  const shown = window.page.locator(".monaco-hover:visible").first();
  let at = "";
  await until(async () => {
    const place = await window.squiggle(severity, code);
    if (at !== `${place.x} ${place.y}`) {
      at = `${place.x} ${place.y}`; // lines move when a lens or a panel comes or goes above or below them
      await window.page.mouse.move(place.x + place.width / 3, place.y + place.height / 2);
    }
    const text = (await shown.innerText({ timeout: 1_000 }).catch(() => "")).replaceAll("\u00a0", " ");
    return texts.every((wanted) => (wanted instanceof RegExp ? wanted.test(text) : text.includes(wanted)));
  }, `a hover with ${texts.join(", ")}`);
}

export async function endHover(window) {
  await window.page.mouse.move(5, 5);
  await window.page.keyboard.press("Escape");
  await window.page.locator(".monaco-hover:visible").waitFor({ state: "detached" });
}

export function tab(window, text) {
  return window.page.locator(".tab", { hasText: text }).first().waitFor();
}
