import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Debounced } from "../src/debounce";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("runs once, when the delay after the last call has passed, and again after a later call", () => {
  const task = vi.fn();
  const debounced = new Debounced(task);
  debounced.call(100);
  vi.advanceTimersByTime(80);
  debounced.call(100);
  vi.advanceTimersByTime(80);
  expect(task).not.toHaveBeenCalled();
  vi.advanceTimersByTime(20);
  expect(task).toHaveBeenCalledTimes(1);
  debounced.call(10);
  vi.advanceTimersByTime(10);
  expect(task).toHaveBeenCalledTimes(2);
});

it("does not run after it is disposed", () => {
  const task = vi.fn();
  const debounced = new Debounced(task);
  debounced.call(100);
  debounced.dispose();
  vi.advanceTimersByTime(1000);
  expect(task).not.toHaveBeenCalled();
});
