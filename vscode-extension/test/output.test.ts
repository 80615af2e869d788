import { describe, expect, it } from "vitest";
import { codeOf } from "../src/findingCode";
import type { RunOutput } from "../src/protocol";
import { clean, forTerminal, Transcript } from "../src/runOutput";
import { run } from "./helpers";

function chunk(text: string): RunOutput {
  return { entrypoint: "/ws/train.py", uri: "file:///ws/train.py", runId: 1, mode: "check", channel: "stdout", text };
}

describe("clean", () => {
  it("removes escape sequences and replaces carriage returns", () => {
    expect(clean("\u001b[31mred\u001b[0m\r\n10%\r20%\u001b]0;title\u0007\n")).toBe("red\n10%\n20%\n");
  });
});

it("ends lines for a terminal with one carriage return and a newline", () => {
  expect(forTerminal("a\nb\r\n\u001b[31m10%\r20%")).toBe("a\r\nb\r\n\u001b[31m10%\r20%");
});

describe("Transcript", () => {
  it("writes a run's header and summary once, each on a new line", () => {
    const transcript = new Transcript(() => new Date(2026, 0, 1, 12, 30, 0));
    expect(transcript.status(run({ state: "starting" }))).toBe("──── Check: /ws/train.py · 12:30:00\n");
    expect(transcript.status(run())).toBe("");
    expect(transcript.output(chunk("loss 1"))).toBe("loss 1");
    expect(transcript.status(run({ state: "done", summary: "train.py: done" }))).toBe("\n──── train.py: done\n\n");
    expect(transcript.status(run({ state: "done" }))).toBe("");
    expect(transcript.status(run({ runId: 2, state: "starting" }))).toContain("────");
  });
});

it("forgets the runs of a stopped server, because the next one also numbers its runs from 1", () => {
  const transcript = new Transcript();
  transcript.status(run({ state: "done" }));
  expect(transcript.status(run())).toBe("");
  transcript.forget();
  expect(transcript.status(run())).toContain("──── Check");
});

describe("codeOf", () => {
  it("returns MagPy's codes only", () => {
    expect(codeOf({ source: "magpy", code: { value: "MP102" } })).toBe("MP102");
    expect(codeOf({ source: "magpy", code: "MP103" })).toBe("MP103");
    expect(codeOf({ source: "ruff", code: "E501" })).toBeUndefined();
    expect(codeOf({ source: "magpy", code: 3 })).toBeUndefined();
  });
});
