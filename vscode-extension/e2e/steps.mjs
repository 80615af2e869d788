// Steps that stories share. Exports: LONG_TIMEOUT, expect, lineOf, workers, check, hover, endHover, waitForTab.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { descendants, languageServers } from "./processes.mjs";
import { until } from "./vscode.mjs";

export const LONG_TIMEOUT = 420_000; // for compiling on a slow, busy machine

export function expect(condition, description) {
  if (!condition) {
    throw new Error(`expected: ${description}`);
  }
}

/** The number of the first line of `file` that contains `text`. */
export function lineOf(workspace, file, text) {
  const line = readFileSync(join(workspace, file), "utf8").split("\n").findIndex((content) => content.includes(text)) + 1;
  expect(line > 0, `${text} in ${file}`);
  return line;
}

/** The processes of runs: the language server starts no others. */
export function workers(server) {
  const [languageServer, ...others] = languageServers(server);
  expect(languageServer !== undefined && others.length === 0, "one language server");
  return descendants(languageServer);
}

/** Clicks the Check lens and waits for the end of the run. */
export async function check(window, shot) {
  await window.clickLens(/^Check$/);
  await window.lens(/Checking… \(click to cancel\)/).waitFor();
  if (shot) {
    await window.shot(shot);
  }
  await window.lens(/^Check$/).waitFor({ timeout: LONG_TIMEOUT });
}

const HOVER_TIMEOUT = 5_000;

/** Hovers over `code`, underlined unless `severity` is undefined, and waits until the hover contains all `texts`. */
export async function hover(window, severity, code, ...texts) {
  const shown = window.page.locator(".monaco-hover:visible").first();
  let hovered = "";
  let since = 0;
  await until(async () => {
    const place = await (severity === undefined ? until(() => window.place(code), code) : window.squiggle(severity, code));
    if (hovered !== `${place.x} ${place.y}`) {
      hovered = `${place.x} ${place.y}`; // lines move when a lens or a panel appears or disappears
      await window.page.mouse.move(place.x + place.width / 3, place.y + place.height / 2);
      since = Date.now();
    } else if (Date.now() - since > HOVER_TIMEOUT) {
      await window.page.mouse.move(5, 5); // the editor asks once, and what is wanted may not have been found then
      hovered = "";
      return false;
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

export function waitForTab(window, text) {
  return window.page.locator(".tab", { hasText: text }).first().waitFor();
}
