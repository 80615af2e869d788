/** Shows how a run is going. Runs in the webview; see runPanel.ts for the other end. */

import { isActive, type LiveBar, type LiveRun } from "../protocol";

interface Api {
  postMessage(message: unknown): void;
}
declare function acquireVsCodeApi(): Api;

const api = acquireVsCodeApi();
const element = (id: string): HTMLElement => document.getElementById(id) as HTMLElement;
const bars = element("bars") as HTMLTableElement;

/** Changes text only if it differs, so that a selection of it stays. */
function write(node: Element, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** As many children as there are items, each with its own content. */
function fill<T>(parent: Element, items: readonly T[], make: () => Element, show: (node: Element, item: T) => void): void {
  while (parent.children.length > items.length) {
    parent.lastElementChild?.remove();
  }
  items.forEach((item, i) => {
    show(parent.children[i] ?? parent.appendChild(make()), item);
  });
}

function makeBar(): HTMLTableRowElement {
  const row = document.createElement("tr");
  const name = row.appendChild(document.createElement("th"));
  name.scope = "row";
  const cell = row.appendChild(document.createElement("td"));
  cell.setAttribute("aria-hidden", "true"); // the figures say the same
  const track = cell.appendChild(document.createElement("div"));
  track.className = "track";
  track.appendChild(document.createElement("div")).className = "bar";
  row.appendChild(document.createElement("td")).className = "figures";
  return row;
}

function showBar(row: Element, bar: LiveBar): void {
  const [name, cell, figures] = [...row.children] as [HTMLElement, HTMLElement, HTMLElement];
  write(name, bar.name);
  name.title = bar.name;
  const filled = cell.querySelector<HTMLElement>(".bar");
  if (filled !== null) {
    filled.style.width = `${Math.min(Math.max(bar.percent, 0), 100)}%`;
  }
  write(figures, bar.figures);
}

function show(run: LiveRun): void {
  element("empty").hidden = true;
  element("run").hidden = false;
  const active = isActive(run.state);
  write(element("title"), run.label);
  element("state").dataset.state = run.state;
  write(element("state"), run.failure === "" ? run.state : `${run.state}: ${run.failure}`);
  element("cancel").hidden = !active;
  element("report").hidden = run.state !== "done";
  write(element("head"), run.head === "" ? run.doing : run.head);
  fill(element("lines"), run.lines, () => document.createElement("li"), write);
  bars.hidden = run.bars.length === 0;
  write(bars.caption as Element, `Share of the ${run.barsOf} step, and speedup`);
  fill(bars.tBodies[0] as Element, run.bars, makeBar, showBar);
  document.body.dataset.state = run.state;
}

window.addEventListener("message", (event: MessageEvent<LiveRun>) => {
  show(event.data);
});
for (const id of ["cancel", "report"]) {
  element(id).addEventListener("click", () => {
    api.postMessage({ type: id });
  });
}
api.postMessage({ type: "ready" });
