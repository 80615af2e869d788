/** Position and visible part of the graph. Pure: drawing is in graph.ts. */

export interface Box {
  x: number;
  y: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Screen = (world - origin) * scale. */
export interface Camera {
  x: number;
  y: number;
  scale: number;
}

const SMALLEST = 0.02;
const LARGEST = 4;
const MARGIN = 16;
const LEGIBLE = 0.3;
const OPENING = 0.7;

/** The initial view: the whole graph, or its beginning if the whole would not be readable. */
export function opening(graph: Size, screen: Size, across: boolean): Camera {
  const whole = fit(graph, screen);
  if (whole.scale >= LEGIBLE) {
    return whole;
  }
  const x = across ? screen.width / 2 / OPENING : graph.width / 2;
  return centered(x, screen.height / 2 / OPENING, OPENING, screen);
}

/** The whole graph, centered, at most at scale 1. */
export function fit(graph: Size, screen: Size): Camera {
  const room = Math.min((screen.width - MARGIN) / graph.width, (screen.height - MARGIN) / graph.height);
  const scale = Math.min(Math.max(room, SMALLEST), 1);
  return centered(graph.width / 2, graph.height / 2, scale, screen);
}

export function centered(x: number, y: number, scale: number, screen: Size): Camera {
  return { x: x - screen.width / (2 * scale), y: y - screen.height / (2 * scale), scale };
}

/** Zooms by `factor` around a fixed point. */
export function zoomed(camera: Camera, factor: number, at: Box): Camera {
  const scale = Math.min(Math.max(camera.scale * factor, SMALLEST), LARGEST);
  return { x: camera.x + at.x / camera.scale - at.x / scale, y: camera.y + at.y / camera.scale - at.y / scale, scale };
}

export function panned(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale };
}

/** What was in the middle of the screen stays there when its size changes: a result that was just found is not moved from under the mouse. */
export function resized(camera: Camera, from: Size, to: Size): Camera {
  return panned(camera, (to.width - from.width) / 2, (to.height - from.height) / 2);
}

export function toWorld(camera: Camera, at: Box): Box {
  return { x: at.x / camera.scale + camera.x, y: at.y / camera.scale + camera.y };
}

/** Boxes by row, so that neither drawing nor a click has to search thousands. */
export class Rows {
  private readonly rows = new Map<number, number[]>();

  constructor(
    private readonly boxes: readonly Box[],
    private readonly box: Size,
  ) {
    boxes.forEach(({ y }, index) => {
      const row = this.rows.get(this.row(y));
      if (row === undefined) {
        this.rows.set(this.row(y), [index]);
      } else {
        row.push(index);
      }
    });
  }

  private row(y: number): number {
    return Math.floor(y / this.box.height);
  }

  /** The boxes in a part of the world. */
  inside(from: Box, to: Box): number[] {
    const found: number[] = [];
    for (let row = this.row(from.y) - 1; row <= this.row(to.y); row++) {
      for (const index of this.rows.get(row) ?? []) {
        const { x, y } = this.boxes[index] as Box;
        if (x < to.x && x + this.box.width > from.x && y < to.y && y + this.box.height > from.y) {
          found.push(index);
        }
      }
    }
    return found;
  }

  /** The box at a point of the world. */
  at(point: Box): number | undefined {
    return this.inside(point, { x: point.x + 0.001, y: point.y + 0.001 })[0];
  }
}

/** The nodes whose description contains all words of `text`. */
export function matches(nodes: readonly { tooltip: readonly string[]; label: string; name: string }[], text: string): number[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    return [];
  }
  return nodes.flatMap((node, index) => {
    const all = [node.name, node.label, ...node.tooltip].join("\n").toLowerCase();
    return words.every((word) => all.includes(word)) ? [index] : [];
  });
}
