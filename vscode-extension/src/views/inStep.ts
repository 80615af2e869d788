/** Which kernels belong to which lines of the program, both ways. Pure: see kernels.ts for what is shown. */

import type { KernelSection } from "../protocol";

/** Lines of a file of the program, 0-based; `region`: all that a call of this region launches, whatever its lines. */
export interface SourceLines {
  uri: string;
  first: number;
  last: number;
  region?: string;
}

/** The argument of a command that shows kernels; undefined if a menu has passed something else. */
export function sourceLines(about: unknown): SourceLines | undefined {
  if (typeof about !== "object" || about === null) {
    return undefined;
  }
  const { uri, first, last, region } = about as Record<string, unknown>;
  if (typeof uri !== "string" || !isLine(first) || !isLine(last)) {
    return undefined;
  }
  return { uri, first, last, ...(typeof region === "string" && region !== "" ? { region } : {}) };
}

function isLine(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}

/** The kernels that compute something of these lines. */
export function kernelsOf(kernels: readonly KernelSection[], wanted: SourceLines): KernelSection[] {
  const { uri, first, last, region } = wanted;
  return kernels.filter((kernel) =>
    region === undefined ? kernel.places.some((at) => at.uri === uri && at.line >= first && at.line <= last) : kernel.region === region,
  );
}

/** The kernel at a line of the text. */
export function kernelAt(kernels: readonly KernelSection[], line: number): KernelSection | undefined {
  return kernels.find(({ first, last }) => line >= first && line <= last);
}

/** The lines of one file that a kernel computes something of, in order. */
export function linesIn(kernel: KernelSection | undefined, uri: string): number[] {
  return (kernel?.places ?? [])
    .filter((at) => at.uri === uri)
    .map((at) => at.line)
    .sort((one, other) => one - other);
}
