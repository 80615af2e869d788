/** Draws a graph on a canvas: zoom, search, click. Runs in the webview; see graphPanel.ts for the other end. */

import type { Graph } from "../protocol";
import { type Box, type Camera, centered, fit, matches, opening, panned, resized, Rows, type Size, toWorld, zoomed } from "./camera";

interface Api {
  postMessage(message: unknown): void;
}
declare function acquireVsCodeApi(): Api;

const api = acquireVsCodeApi();
const element = (id: string): HTMLElement => document.getElementById(id) as HTMLElement;
const canvas = element("graph") as HTMLCanvasElement;
const search = element("search") as HTMLInputElement;
const found = element("found");
const title = element("title");
const rest = element("rest");
const tip = element("tip");
const kind = element("kind") as HTMLSelectElement;
const capture = element("capture") as HTMLSelectElement;
const context = canvas.getContext("2d") as CanvasRenderingContext2D;

const READABLE = 0.45; // below this scale text is not readable
const CLICK = 4; // pixels that a click may move

let graph: Graph | undefined;
let rows: Rows | undefined;
let camera: Camera = { x: 0, y: 0, scale: 1 };
let size: Size = { width: 0, height: 0 }; // of the canvas: the one that the camera is for
let hits: number[] = [];
let hit = -1;
let chosen = new Set<number>();
let hovered: number | undefined;
let colors: Record<string, string> = {};
let frameRequest = 0;

/** The canvas's size. Where it has changed (the header wraps, columns are moved), the middle of the view is still the middle. */
function followSize(): Size {
  const next = { width: canvas.clientWidth, height: canvas.clientHeight };
  if (next.width !== size.width || next.height !== size.height) {
    const wasHidden = size.width === 0 || size.height === 0;
    camera = resized(camera, size, next);
    size = next;
    if (wasHidden) {
      place();
    }
  }
  return size;
}

/** Shows the selected nodes, or else the beginning. */
function place(): void {
  if (chosen.size > 0) {
    center(Math.min(...chosen));
  } else if (graph !== undefined) {
    camera = opening(graph, followSize(), graph.across);
  }
}

function theme(): void {
  const style = getComputedStyle(document.body);
  const color = (name: string, other: string): string => style.getPropertyValue(name).trim() || other;
  colors = {
    text: color("--vscode-editor-foreground", "#888"),
    soft: color("--vscode-descriptionForeground", "#888"),
    box: color("--vscode-editorWidget-background", "#2224"),
    border: color("--vscode-editorWidget-border", "#8888"),
    edge: color("--vscode-editorLineNumber-foreground", "#8886"),
    placeholder: color("--vscode-charts-blue", "#3794ff"),
    read: color("--vscode-charts-orange", "#d18616"),
    written: color("--vscode-charts-orange", "#d18616"),
    cut: color("--vscode-charts-red", "#f14c4c"),
    chosen: color("--vscode-focusBorder", "#007fd4"),
    hit: color("--vscode-editor-findMatchHighlightBackground", "#ea5c0055"),
    font: color("--vscode-font-family", "sans-serif"),
  };
}

function draw(): void {
  if (frameRequest === 0) {
    frameRequest = requestAnimationFrame(paint);
  }
}

function paint(): void {
  frameRequest = 0;
  const { width, height } = followSize();
  const ratio = window.devicePixelRatio;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  if (graph === undefined || rows === undefined) {
    return;
  }
  const { scale } = camera;
  context.setTransform(ratio * scale, 0, 0, ratio * scale, -camera.x * scale * ratio, -camera.y * scale * ratio);
  const from = toWorld(camera, { x: 0, y: 0 });
  const to = toWorld(camera, { x: width, y: height });
  cuts(graph, scale);
  edges(graph, from, to, scale);
  const inside = rows.inside(from, to);
  const marked = new Set(hits);
  for (const index of inside) {
    box(graph, index, scale, marked.has(index));
  }
}

function cuts({ cuts: heights, width }: Graph, scale: number): void {
  context.strokeStyle = colors["cut"] ?? "";
  context.lineWidth = 1.5 / Math.min(scale, 1);
  context.setLineDash([8, 6]);
  context.beginPath();
  for (const y of heights) {
    context.moveTo(0, y);
    context.lineTo(width, y);
  }
  context.stroke();
  context.setLineDash([]);
}

/** Draws all edges of one style as one path, so that thousands take one call. */
function edges({ nodes, edges: all, boxWidth, boxHeight, across }: Graph, from: Box, to: Box, scale: number): void {
  const near = new Path2D();
  const others = new Path2D();
  for (const [start, end] of all) {
    const a = nodes[start] as Box;
    const b = nodes[end] as Box;
    const left = Math.min(a.x, b.x);
    const right = Math.max(a.x, b.x) + boxWidth;
    const above = Math.min(a.y, b.y);
    const below = Math.max(a.y, b.y) + boxHeight;
    if (below < from.y || above > to.y || right < from.x || left > to.x) {
      continue;
    }
    const path = chosen.has(start) || chosen.has(end) ? near : others;
    const [x1, y1, x2, y2] = across
      ? [a.x + boxWidth, a.y + boxHeight / 2, b.x, b.y + boxHeight / 2]
      : [a.x + boxWidth / 2, a.y + boxHeight, b.x + boxWidth / 2, b.y];
    path.moveTo(x1, y1);
    if (scale < READABLE) {
      path.lineTo(x2, y2);
    } else if (across) {
      const bend = Math.max((x2 - x1) / 2, 12);
      path.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
    } else {
      const bend = Math.max((y2 - y1) / 2, 12);
      path.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
    }
  }
  context.lineWidth = 1 / Math.min(scale, 1);
  context.strokeStyle = colors["edge"] ?? "";
  context.stroke(others);
  context.lineWidth = 2.5 / Math.min(scale, 1);
  context.strokeStyle = colors["chosen"] ?? "";
  context.stroke(near);
}

function box({ nodes, boxWidth, boxHeight }: Graph, index: number, scale: number, marked: boolean): void {
  const node = nodes[index];
  if (node === undefined) {
    return;
  }
  context.fillStyle = colors["box"] ?? "";
  context.strokeStyle = colors[chosen.has(index) ? "chosen" : node.kind] ?? colors["border"] ?? "";
  context.lineWidth = (chosen.has(index) || index === hovered ? 2.5 : 1) / Math.min(scale, 1);
  context.beginPath();
  context.roundRect(node.x, node.y, boxWidth, boxHeight, 6);
  context.fill();
  if (marked) {
    context.fillStyle = colors["hit"] ?? "";
    context.fill();
  }
  context.stroke();
  if (scale < READABLE) {
    return;
  }
  context.textAlign = "center";
  context.fillStyle = colors["text"] ?? "";
  context.font = `12px ${colors["font"] ?? ""}`;
  context.fillText(ending(node.label, 22), node.x + boxWidth / 2, node.y + 16, boxWidth - 8);
  context.fillStyle = colors["soft"] ?? "";
  context.font = `10px ${colors["font"] ?? ""}`;
  context.fillText(ending(node.below, 28), node.x + boxWidth / 2, node.y + 30, boxWidth - 8);
}

/** The end of a long path, which is more informative than its beginning. */
function ending(text: string, width: number): string {
  return text.length <= width ? text : `…${text.slice(1 - width)}`;
}

function show(next: Graph, names: readonly string[]): void {
  const same = graph?.run === next.run && graph.region === next.region && graph.kind === next.kind && graph.width === next.width;
  graph = next;
  rows = new Rows(next.nodes, { width: next.boxWidth, height: next.boxHeight });
  title.textContent = next.title;
  rest.hidden = next.left === 0;
  rest.textContent = `${next.left} more nodes are not drawn: list all`;
  kind.value = next.kind;
  capture.replaceChildren(
    ...Array.from({ length: next.of }, (_, i) => new Option(`capture ${i + 1}`, String(i + 1), false, i + 1 === next.capture)),
  );
  chosen = new Set(names.map((name) => next.nodes.findIndex((node) => node.name === name)).filter((index) => index >= 0));
  hovered = undefined;
  tip.hidden = true;
  if (chosen.size > 0 || !same) {
    place();
  }
  updateSearch();
  document.body.dataset["nodes"] = String(next.nodes.length);
  draw();
}

function center(index: number): void {
  const node = graph?.nodes[index];
  if (graph !== undefined && node !== undefined) {
    const scale = Math.max(camera.scale, 0.8);
    camera = centered(node.x + graph.boxWidth / 2, node.y + graph.boxHeight / 2, scale, followSize());
  }
}

/** Searches again; `hit` is the index of the centered result. */
function updateSearch(): void {
  hits = graph === undefined ? [] : matches(graph.nodes, search.value);
  hit = -1;
  showMatchCount();
}

function step(by: number): void {
  if (hits.length === 0) {
    return;
  }
  hit = (hit + by + hits.length) % hits.length;
  const index = hits[hit];
  if (index !== undefined) {
    chosen = new Set([index]);
    center(index);
  }
  showMatchCount();
  draw();
}

function showMatchCount(): void {
  const count = graph?.nodes.length ?? 0;
  found.textContent =
    search.value.trim() === "" ? `${count} nodes` : hits.length === 0 ? "no matches" : hit < 0 ? `${hits.length} matches` : `${hit + 1} of ${hits.length}`;
}

/** Where on the canvas an event is. It may come before the canvas is drawn in its new size, and is about that one. */
function point(event: MouseEvent): Box {
  followSize();
  const area = canvas.getBoundingClientRect();
  return { x: event.clientX - area.left, y: event.clientY - area.top };
}

function hover(event: MouseEvent): void {
  const at = point(event);
  const index = rows?.at(toWorld(camera, at));
  if (index !== hovered) {
    hovered = index;
    draw();
  }
  const node = index === undefined ? undefined : graph?.nodes[index];
  canvas.style.cursor = node === undefined ? "grab" : node.place === null ? "default" : "pointer";
  tip.hidden = node === undefined;
  if (node !== undefined) {
    tip.textContent = node.tooltip.join("\n");
    const { width, height } = followSize();
    tip.style.left = `${Math.max(8, Math.min(at.x + 14, width - tip.offsetWidth - 8))}px`;
    const below = at.y + 18;
    tip.style.top = `${below + tip.offsetHeight < height ? below : Math.max(8, at.y - tip.offsetHeight - 8)}px`;
  }
}

let drag: { x: number; y: number; moved: number } | undefined;

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  drag = { x: event.clientX, y: event.clientY, moved: 0 };
});
canvas.addEventListener("pointermove", (event) => {
  if (drag === undefined) {
    hover(event);
    return;
  }
  const dx = event.clientX - drag.x;
  const dy = event.clientY - drag.y;
  drag = { x: event.clientX, y: event.clientY, moved: drag.moved + Math.abs(dx) + Math.abs(dy) };
  if (drag.moved > CLICK) {
    tip.hidden = true;
    camera = panned(camera, dx, dy);
    draw();
  }
});
canvas.addEventListener("pointerup", (event) => {
  const clicked = drag !== undefined && drag.moved <= CLICK;
  drag = undefined;
  const index = clicked ? rows?.at(toWorld(camera, point(event))) : undefined;
  if (!clicked) {
    return;
  }
  chosen = new Set(index === undefined ? [] : [index]);
  draw();
  const place = index === undefined ? undefined : graph?.nodes[index]?.place;
  if (place) {
    api.postMessage({ type: "open", place });
  }
});
canvas.addEventListener("pointercancel", () => {
  drag = undefined;
});
canvas.addEventListener("pointerleave", () => {
  hovered = undefined;
  tip.hidden = true;
  draw();
});
canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    camera = zoomed(camera, Math.exp((-event.deltaY * lines) / 400), point(event));
    draw();
  },
  { passive: false },
);

const middle = (): Box => {
  const { width, height } = followSize();
  return { x: width / 2, y: height / 2 };
};
const zoom = (factor: number): void => {
  camera = zoomed(camera, factor, middle());
  draw();
};
const whole = (): void => {
  if (graph !== undefined) {
    camera = fit(graph, followSize());
    draw();
  }
};
element("in").addEventListener("click", () => {
  zoom(1.3);
});
element("out").addEventListener("click", () => {
  zoom(1 / 1.3);
});
element("whole").addEventListener("click", whole);
search.addEventListener("input", () => {
  updateSearch();
  draw();
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    step(event.shiftKey ? -1 : 1);
  } else if (event.key === "Escape") {
    search.value = "";
    updateSearch();
    draw();
  }
});
kind.addEventListener("change", () => {
  api.postMessage({ type: "want", kind: kind.value });
});
capture.addEventListener("change", () => {
  api.postMessage({ type: "want", capture: Number(capture.value) });
});
const KEYS: Record<string, () => void> = {
  "+": () => {
    zoom(1.3);
  },
  "-": () => {
    zoom(1 / 1.3);
  },
  "0": whole,
  "/": () => {
    search.focus();
  },
  ArrowLeft: () => {
    camera = panned(camera, 60, 0);
  },
  ArrowRight: () => {
    camera = panned(camera, -60, 0);
  },
  ArrowUp: () => {
    camera = panned(camera, 0, 60);
  },
  ArrowDown: () => {
    camera = panned(camera, 0, -60);
  },
};
document.addEventListener("keydown", (event) => {
  const action = KEYS[event.key];
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (action !== undefined && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    action();
    draw();
  }
});
window.addEventListener("message", (event: MessageEvent<{ type: string; graph?: Graph; nodes?: string[]; text?: string }>) => {
  const { data } = event;
  if (data.type === "graph" && data.graph !== undefined) {
    show(data.graph, data.nodes ?? []);
  } else if (data.type === "problem") {
    title.textContent = data.text ?? "";
  }
});
new ResizeObserver(() => {
  followSize();
  draw();
}).observe(canvas);
new MutationObserver(() => {
  theme();
  draw();
}).observe(document.body, { attributes: true, attributeFilter: ["class", "data-vscode-theme-id"] });
theme();
rest.addEventListener("click", () => {
  api.postMessage({ type: "list" });
});
api.postMessage({ type: "ready" });
