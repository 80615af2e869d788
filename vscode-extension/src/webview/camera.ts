/** Where the graph is on the screen, and what of it is seen. Pure: the drawing is in graph.ts. */

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

/** What a graph is first shown as: whole, or from its beginning where too little could be read of it as a whole. */
export function opening(graph: Size, screen: Size, across: boolean): Camera {
  const whole = fit(graph, screen);
  if (whole.scale >= LEGIBLE) {
    return whole;
  }
  const x = across ? screen.width / 2 / OPENING : graph.width / 2;
  return centred(x, screen.height / 2 / OPENING, OPENING, screen);
}

/** The whole graph, centred; never larger than life. */
export function fit(graph: Size, screen: Size): Camera {
  const room = Math.min((screen.width - MARGIN) / graph.width, (screen.height - MARGIN) / graph.height);
  const scale = Math.min(Math.max(room, SMALLEST), 1);
  return centred(graph.width / 2, graph.height / 2, scale, screen);
}

export function centred(x: number, y: number, scale: number, screen: Size): Camera {
  return { x: x - screen.width / (2 * scale), y: y - screen.height / (2 * scale), scale };
}

/** Zoomed by `factor`; what is under the point stays there. */
export function zoomed(camera: Camera, factor: number, at: Box): Camera {
  const scale = Math.min(Math.max(camera.scale * factor, SMALLEST), LARGEST);
  return { x: camera.x + at.x / camera.scale - at.x / scale, y: camera.y + at.y / camera.scale - at.y / scale, scale };
}

export function panned(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale };
}

export function toWorld(camera: Camera, at: Box): Box {
  return { x: at.x / camera.scale + camera.x, y: at.y / camera.scale + camera.y };
}

/** Boxes by the rows they stand in, so that neither a frame nor a click looks at all of thousands. */
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

  /** The boxes that a part of the world shows. */
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

/** The nodes that have all words of `text` in what is told of them. */
export function matches(nodes: readonly { told: readonly string[]; label: string; name: string }[], text: string): number[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    return [];
  }
  return nodes.flatMap((node, index) => {
    const all = [node.name, node.label, ...node.told].join("\n").toLowerCase();
    return words.every((word) => all.includes(word)) ? [index] : [];
  });
}
