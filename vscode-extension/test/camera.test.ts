import { describe, expect, it } from "vitest";
import { type Camera, centered, fit, matches, opening, panned, resized, Rows, toWorld, zoomed } from "../src/webview/camera";

const screen = { width: 800, height: 600 };

describe("camera", () => {
  it("fits the whole graph, centered, at a scale of at most 1", () => {
    const camera = fit({ width: 8000, height: 1000 }, screen);
    expect(toWorld(camera, { x: 400, y: 300 })).toEqual({ x: 4000, y: 500 });
    expect(toWorld(camera, { x: 0, y: 0 }).x).toBeLessThanOrEqual(0);
    expect(fit({ width: 10, height: 10 }, screen).scale).toBe(1);
  });

  it("opens a large graph at its beginning, at a readable scale", () => {
    const camera = opening({ width: 1000, height: 20_000 }, screen, false);
    expect(camera.scale).toBeGreaterThan(0.5);
    expect(camera.y).toBeCloseTo(0);
    expect(toWorld(camera, { x: 400, y: 0 }).x).toBeCloseTo(500);
    expect(opening({ width: 9000, height: 20_000 }, screen, true)).toMatchObject({ x: expect.closeTo(0) as number, y: expect.closeTo(0) as number });
    expect(opening({ width: 700, height: 500 }, screen, true)).toEqual(fit({ width: 700, height: 500 }, screen));
  });

  it("keeps the point under the pointer in place while zooming", () => {
    const at = { x: 100, y: 50 };
    let camera: Camera = { x: 7, y: 9, scale: 0.5 };
    const before = toWorld(camera, at);
    for (const factor of [1.5, 1.2, 0.3]) {
      camera = zoomed(camera, factor, at);
      expect(toWorld(camera, at).x).toBeCloseTo(before.x);
      expect(toWorld(camera, at).y).toBeCloseTo(before.y);
    }
    expect(zoomed(camera, 1e9, at).scale).toBe(4);
    expect(zoomed(camera, 1e-9, at).scale).toBe(0.02);
  });

  it("keeps the middle in the middle when the screen's size changes", () => {
    const camera = resized(centered(50, 60, 2, screen), screen, { width: 300, height: 900 });
    expect(toWorld(camera, { x: 150, y: 450 })).toEqual({ x: 50, y: 60 });
    expect(camera.scale).toBe(2);
  });

  it("pans by screen pixels and centers a point", () => {
    expect(panned({ x: 10, y: 10, scale: 2 }, 20, -4)).toEqual({ x: 0, y: 12, scale: 2 });
    expect(toWorld(centered(50, 60, 2, screen), { x: 400, y: 300 })).toEqual({ x: 50, y: 60 });
  });
});

describe("Rows", () => {
  const box = { width: 150, height: 38 };
  const boxes = Array.from({ length: 2000 }, (_, i) => ({ x: 12 + (i % 40) * 168, y: 12 + Math.floor(i / 40) * 72 }));
  const rows = new Rows(boxes, box);

  it("finds the box at a point, and none next to it", () => {
    boxes.forEach(({ x, y }, index) => {
      expect(rows.at({ x: x + 75, y: y + 19 })).toBe(index);
      expect(rows.at({ x: x + 155, y: y + 19 })).toBeUndefined();
      expect(rows.at({ x: x + 75, y: y + 45 })).toBeUndefined();
    });
  });

  it("returns the same boxes for a part of the world as a search of all boxes", () => {
    for (const [x, y, w, h] of [[0, 0, 800, 600], [3000, 1000, 500, 90], [-50, -50, 40, 40], [160, 45, 5, 5]] as const) {
      const from = { x, y };
      const to = { x: x + w, y: y + h };
      const expected = boxes.flatMap((b, i) => (b.x < to.x && b.x + 150 > x && b.y < to.y && b.y + 38 > y ? [i] : []));
      expect(rows.inside(from, to).sort((a, b) => a - b)).toEqual(expected);
    }
  });
});

it("matches nodes that have all words in their name, label or tooltip", () => {
  const nodes = [
    { name: "linear", label: "linear", tooltip: ["linear = linear(x)", "at train.py:14"] },
    { name: "relu", label: "relu", tooltip: ["at model.py:3"] },
  ];
  expect(matches(nodes, "LINEAR train")).toEqual([0]);
  expect(matches(nodes, ".py")).toEqual([0, 1]);
  expect(matches(nodes, "linear model")).toEqual([]);
  expect(matches(nodes, "  ")).toEqual([]);
});
