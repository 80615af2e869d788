/** The statements that run as one graph: bodies of training loops, and stretches. Pure: see brackets.ts for what is drawn. */

import type { TreeRun } from "../protocol";

/** Lines, 0-based. */
export interface Lines {
  first: number;
  last: number;
}

/** Of the newest run that has such statements in a file, by the file's URI; the inner ones of nested regions are left out. */
export function bracketsOf(runs: readonly TreeRun[]): Map<string, Lines[]> {
  const found = new Map<string, Lines[]>();
  for (const run of runs) {
    const here = new Map<string, Lines[]>();
    for (const { place, end, complete } of run.regions) {
      if (complete && place !== null && end !== null && end.uri === place.uri && end.line >= place.line) {
        here.set(place.uri, [...(here.get(place.uri) ?? []), { first: place.line, last: end.line }]);
      }
    }
    for (const [uri, all] of here) {
      found.set(uri, outermost(all));
    }
  }
  return found;
}

function outermost(all: readonly Lines[]): Lines[] {
  const sorted = [...all].sort((one, other) => one.first - other.first || other.last - one.last);
  const kept: Lines[] = [];
  for (const lines of sorted) {
    if (lines.first > (kept.at(-1)?.last ?? -1)) {
      kept.push(lines);
    }
  }
  return kept;
}
