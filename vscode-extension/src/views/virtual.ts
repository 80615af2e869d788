/** URIs of the virtual documents, which identify their content. Pure. */

import type { CaptureAt, KernelKind, TextKind } from "../protocol";

export const VIEW_SCHEME = "magpy-view";

export interface Wanted extends CaptureAt {
  kind: TextKind | KernelKind;
  /** Only the kernels of this line of a file. */
  uri?: string;
  line?: number;
}

const NAMES: Record<TextKind | KernelKind, string> = {
  guards: "guards",
  operators: "operator graph",
  references: "reads and writes",
  guardCode: "guard code",
  replayCode: "replay code",
  generatedCode: "generated code",
  triton: "Triton",
  ptx: "PTX",
};

/** Path and query of the document's URI. The path is its tab's name. */
export function nameOf(wanted: Wanted, region: string): { path: string; query: string } {
  const which = wanted.capture === undefined ? "" : ` ${wanted.capture}`;
  const safe = region.replace(/[/\\]/g, "-");
  const end = wanted.kind === "ptx" ? "ptx" : "py";
  return { path: `/${safe}${which} ${NAMES[wanted.kind]}.${end}`, query: JSON.stringify(wanted) };
}

/** The request in a URI's query; undefined if the URI is not ours. */
export function wantedOf(query: string): Wanted | undefined {
  try {
    const parsed: unknown = JSON.parse(query);
    return typeof parsed === "object" && parsed !== null && "kind" in parsed && String(parsed.kind) in NAMES
      ? (parsed as Wanted)
      : undefined;
  } catch {
    return undefined;
  }
}

export function isOfKernels(wanted: Wanted): wanted is Wanted & { kind: KernelKind } {
  return wanted.kind === "triton" || wanted.kind === "ptx";
}

/** The argument of a view's command: a region's id, a capture, or an item of the tree; a menu may pass anything else. */
export function captureAt(about: unknown): CaptureAt {
  if (typeof about === "string") {
    return { region: about };
  }
  if (typeof about !== "object" || about === null) {
    return {};
  }
  const from = ("at" in about && typeof about.at === "object" && about.at !== null ? about.at : about) as Record<string, unknown>;
  return {
    ...(typeof from["run"] === "string" ? { run: from["run"] } : {}),
    ...(typeof from["region"] === "string" ? { region: from["region"] } : {}),
    ...(typeof from["capture"] === "number" ? { capture: from["capture"] } : {}),
  };
}
