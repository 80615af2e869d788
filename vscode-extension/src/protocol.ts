/** The messages between server and extension beyond LSP. */

export type RunState = "starting" | "running" | "done" | "failed" | "cancelled" | "superseded";
export type Mode = "check" | "compiled";
export type SeverityName = "error" | "warning" | "information" | "hint";

/** `magpy/status`, and the response to the run commands. */
export interface RunStatus {
  state: RunState;
  entrypoint: string;
  mode: Mode;
  engine?: "magpy" | "dynamo";
  uri: string;
  runId: number;
  summary: string;
  step: number;
  /** What a compiled run has gained, once it has ended: "1.53x, saved 41 s of 310 s"; empty if that was not measured. */
  gain?: string;
  /** How many graphs of a compiled run were compared with eager mode: "verified 11 of 12 graphs"; empty if none. */
  verified?: string;
  /** After the program's end, while kernels are made: graphs that are done, and all. */
  lowering?: [number, number] | null;
  findings: Record<SeverityName, number>;
  failure: string | null;
  /** When it ended, in milliseconds since the epoch; null while it runs. */
  endedMs?: number | null;
  /** The shown findings are of an older text or of the previous run. */
  stale?: boolean;
}

/** A part's share of the training step, in percent. */
export interface LiveBar {
  name: string;
  percent: number;
  figures: string;
}

/** `magpy/live`: how a compiled run is going, in the words that the terminal shows too. */
export interface LiveRun {
  runId: number;
  entrypoint: string;
  uri: string;
  label: string;
  state: RunState;
  /** Before the first step. */
  doing: string;
  failure: string;
  head: string;
  lines: string[];
  bars: LiveBar[];
  /** The step that the bars are shares of. */
  barsOf: string;
}

/** `magpy/output`: output of the program, or MagPy's report on it ("report"). */
export interface RunOutput {
  entrypoint: string;
  uri: string;
  runId: number;
  mode: Mode;
  channel: "stdout" | "stderr" | "report";
  text: string;
}

/** One entry of the response to `magpy/codes`. */
export interface CodeInfo {
  code: string;
  name: string;
  title: string;
  /** The address of the page on the web, if it is published. */
  url: string | null;
  /** Markdown. */
  page: string;
}

/** The response to `magpy/whyNot`: why a region, or everything in a run, is not compiled. */
export interface WhyNot {
  name: string;
  /** Markdown. */
  page: string;
}

/** A position in the current text, 0-based. */
export interface Place {
  uri: string;
  line: number;
  character: number;
}

export interface TreeFinding {
  code: string;
  severity: SeverityName;
  message: string;
  count: number;
  place: Place | null;
}

export interface TreeCapture {
  number: number;
  summary: string;
  guards: number;
  operations: number;
  objects: number;
  writes: { text: string; place: Place | null }[];
  /** The number of graphs with generated code. */
  generated: number;
}

export interface TreeRegion {
  id: string;
  kind: string;
  name: string;
  complete: boolean;
  summary: string;
  place: Place | null;
  /** The last line of a region that is a part of a function. */
  end: Place | null;
  captures: TreeCapture[];
  findings: TreeFinding[];
  sideEffects: TreeFinding[];
}

/** One entry of the response to `magpy/runs`. */
export interface TreeRun {
  key: string;
  label: string;
  uri: string;
  mode: Mode;
  state: RunState;
  summary: string;
  /** A training step's time as a sentence; empty unless the run was compiled and has ended. */
  step: string;
  endedAt: number | null;
  seconds: number | null;
  older: boolean;
  regions: TreeRegion[];
  findings: TreeFinding[];
}

/** Selects the capture of a view; omitted fields mean the latest. */
export interface CaptureAt {
  run?: string;
  region?: string;
  capture?: number;
}

export type GraphKind = "operators" | "references";
export type TextKind = "guards" | "operators" | "references" | "guardCode" | "replayCode" | "generatedCode";

/** The code of kernels. */
export type KernelKind = "triton" | "ptx";

export interface GraphNode {
  name: string;
  label: string;
  below: string;
  kind: "placeholder" | "call" | "read" | "object" | "written";
  tooltip: string[];
  place: Place | null;
  x: number;
  y: number;
}

/** The response to `magpy/graph`. */
export interface Graph {
  run: string;
  region: string;
  capture: number;
  of: number;
  title: string;
  kind: GraphKind;
  width: number;
  height: number;
  boxWidth: number;
  boxHeight: number;
  cuts: number[];
  nodes: GraphNode[];
  edges: [number, number][];
  /** Edges go from left to right, not from top to bottom. */
  across: boolean;
  /** The number of omitted nodes of a very large graph. */
  left: number;
}

/** The response to `magpy/text`; columns of links are UTF-16 units. */
export interface TextResponse {
  run: string;
  region: string;
  capture: number;
  of: number;
  title: string;
  text: string;
  language: string;
  links: { line: number; start: number; end: number; place: Place }[];
}

/** A kernel in the text of `magpy/kernels`: its first and last line there, and the lines of the program that it computes. */
export interface KernelSection {
  name: string;
  region: string;
  graph: string;
  first: number;
  last: number;
  places: Place[];
}

/** The response to `magpy/kernels`. */
export interface KernelsResponse {
  missing: false;
  run: string;
  label: string;
  target: string;
  device: string;
  text: string;
  language: string;
  links: TextResponse["links"];
  kernels: KernelSection[];
}

/** The response to `magpy/kernels` if there are none: the program to check, and the devices to check it for. */
export interface KernelsMissing {
  missing: true;
  program: RunArgument;
  devices: { target: string; title: string }[];
}

/** One entry of the response to `magpy/nodes`: the nodes of a line. */
export interface NodesOfLine {
  run: string;
  label: string;
  region: string;
  name: string;
  capture: number;
  of: number;
  nodes: string[];
}

/** One entry of `magpy.entrypoints`, or of `[[tool.magpy.entrypoints]]` with its base folder. */
export interface Entrypoint {
  name: string;
  program?: string | null;
  module?: string | null;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string | null;
  python?: string | null;
  steps?: number | null;
  nproc?: number;
  folder?: string;
}

/** The argument of the run commands. */
export interface RunArgument {
  uri: string;
  /** Of a configured entrypoint. */
  name?: string;
  module?: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  python?: string;
  steps?: number;
  nproc?: number;
  /** The device that kernels are made for after the program's end. */
  target?: string;
  wait?: boolean;
}

/** Requests of the views. */
export const VIEWS = {
  runs: "magpy/runs",
  graph: "magpy/graph",
  text: "magpy/text",
  nodes: "magpy/nodes",
  kernels: "magpy/kernels",
  page: "magpy/page",
  entrypoints: "magpy/entrypoints",
  whyNot: "magpy/whyNot",
} as const;

export const STATUS = "magpy/status";
export const OUTPUT = "magpy/output";
export const LIVE = "magpy/live";
export const CODES = "magpy/codes";

/** Server commands; the language client registers these ids, so the extension's own commands have others. */
export const SERVER_COMMANDS = {
  check: "magpy.check",
  runCompiled: "magpy.runCompiled",
  compare: "magpy.compare",
  cancel: "magpy.cancel",
  clear: "magpy.clear",
} as const;

export function isActive(state: RunState): boolean {
  return state === "starting" || state === "running";
}
