/** The items of the tree of runs. Pure: see tree.ts for the view itself. */

import type { CaptureAt, Place, TreeCapture, TreeFinding, TreeRegion, TreeRun } from "../protocol";
import { plural } from "../statusText";

export interface Item {
  id: string;
  label: string;
  detail?: string;
  tooltip?: string;
  icon: string;
  children?: Item[];
  expanded?: boolean;
  /** For the menus: `run`, `region`, `capture`. */
  context?: string;
  place?: Place | null;
  /** A command of the extension, with its capture. */
  command?: string;
  at?: CaptureAt;
}

const ICONS = { error: "error", warning: "warning", information: "info", hint: "lightbulb" } as const;

/** `nameOf` returns the name of a program's file in this workspace. */
export function itemsOf(runs: readonly TreeRun[], now: number, nameOf: (uri: string) => string): Item[] {
  return runs.map((run) => runItem(run, now, run.uri.endsWith(`/${run.label}`) ? nameOf(run.uri) : run.label)).reverse();
}

function runItem(run: TreeRun, now: number, label: string): Item {
  const state = run.state === "running" || run.state === "starting" ? "running" : run.state;
  const parts = [
    run.mode === "check" ? "checked" : "run compiled",
    ...(run.endedAt === null ? [] : [ago(now - run.endedAt)]),
    ...(run.older ? ["older than the text"] : []),
  ];
  return {
    id: run.key,
    label,
    detail: state === "running" ? "running…" : state === "done" ? parts.join(", ") : `${state}, ${parts.slice(1).join(", ")}`,
    tooltip: run.step === "" ? run.summary : `${run.step}\n\n${run.summary}`,
    icon: state === "running" ? "sync~spin" : run.older ? "history" : run.mode === "check" ? "checklist" : "rocket",
    context: "run",
    expanded: true,
    at: { run: run.key },
    children: [
      ...run.regions.map((region) => regionItem(run, region)),
      ...run.findings.map((finding, index) => findingItem(`${run.key}/loose/${index}`, finding)),
    ],
  };
}

function regionItem(run: TreeRun, region: TreeRegion): Item {
  const id = `${run.key}/${region.id}`;
  const children = region.captures.map((capture) => captureItem(run, region, capture, id)).reverse();
  if (region.findings.length > 0) {
    children.push(group(`${id}/findings`, "Findings", "list-unordered", region.findings));
  }
  if (region.sideEffects.length > 0) {
    children.push(group(`${id}/effects`, "Side effects", "edit", region.sideEffects));
  }
  return {
    id,
    label: region.name,
    detail: region.summary,
    tooltip: region.complete ? "One complete graph." : "The graph is incomplete: its findings say why.",
    icon: region.complete ? "pass" : "circle-slash",
    context: "region",
    place: region.place,
    at: { run: run.key, region: region.id },
    children,
  };
}

function group(id: string, label: string, icon: string, findings: readonly TreeFinding[]): Item {
  return {
    id,
    label,
    detail: String(findings.length),
    icon,
    children: findings.map((finding, index) => findingItem(`${id}/${index}`, finding)),
  };
}

function captureItem(run: TreeRun, region: TreeRegion, capture: TreeCapture, parent: string): Item {
  const id = `${parent}/${capture.number}`;
  const at = { run: run.key, region: region.id, capture: capture.number };
  const leaf = (name: string, label: string, detail: string, icon: string, command: string): Item => ({
    id: `${id}/${name}`,
    label,
    detail,
    icon,
    command,
    at,
  });
  const children = [
    leaf("graph", "Operator graph", plural(capture.operations, "operation"), "type-hierarchy", "magpy.showOperatorGraph"),
    leaf("guards", "Guards", plural(capture.guards, "check"), "shield", "magpy.showGuards"),
    leaf("refgraph", "Reads and writes", plural(capture.objects, "object"), "references", "magpy.showRefGraph"),
  ];
  if (capture.generated > 0) {
    children.push(leaf("code", "Generated code", plural(capture.generated, "graph"), "file-code", "magpy.showGeneratedCode"));
  }
  if (capture.writes.length > 0) {
    children.push({
      id: `${id}/writes`,
      label: "Writes",
      detail: String(capture.writes.length),
      icon: "edit",
      children: capture.writes.map((write, index) => ({
        id: `${id}/writes/${index}`,
        label: write.text,
        icon: "symbol-field",
        place: write.place,
      })),
    });
  }
  return { id, label: `Capture ${capture.number}`, detail: capture.summary, icon: "layers", context: "capture", at, children };
}

function findingItem(id: string, finding: TreeFinding): Item {
  const [first = ""] = finding.message.split("\n");
  return {
    id,
    label: finding.code,
    detail: first,
    tooltip: finding.message,
    icon: ICONS[finding.severity],
    place: finding.place,
  };
}

/** `2 min ago`: the relative time of a run's end. */
export function ago(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / 60_000);
  if (minutes < 1) {
    return "just now";
  }
  if (minutes < 60) {
    return `${minutes} min ago`;
  }
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ago` : plural(Math.floor(hours / 24), "day") + " ago";
}
