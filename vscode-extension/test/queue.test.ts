import { expect, it } from "vitest";
import { LatestQueue } from "../src/queue";

it("runs one task at a time and skips superseded tasks", async () => {
  const queue = new LatestQueue();
  const log: string[] = [];
  let release: () => void = () => undefined;
  const first = queue.run(async () => {
    log.push("a");
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    log.push("a done");
  });
  const second = queue.run(() => {
    log.push("b");
    return Promise.resolve();
  });
  const third = queue.run(() => {
    log.push("c");
    return Promise.resolve();
  });
  release();
  await Promise.all([first, second, third]);
  expect(log).toEqual(["a", "a done", "c"]);
});

it("rejects if the last task fails, and runs later tasks", async () => {
  const queue = new LatestQueue();
  await expect(queue.run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  await expect(queue.run(() => Promise.resolve())).resolves.toBeUndefined();
});
