import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TOOLS } from "../src/tools";

interface Step {
  id: string;
  description: string;
  media: { markdown?: string; image?: string };
  completionEvents?: string[];
}

interface Manifest {
  contributes: {
    commands: { command: string; title: string }[];
    views: Record<string, { id: string }[]>;
    viewsWelcome: { contents: string }[];
    walkthroughs: { steps: Step[] }[];
  };
}

const root = join(__dirname, "..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const { contributes } = JSON.parse(read("package.json")) as Manifest;
const contributed = new Map(contributes.commands.map(({ command, title }) => [command, title]));
const steps = contributes.walkthroughs.flatMap((walkthrough) => walkthrough.steps);
const implemented = `${read("src/commands.ts")}${read("src/tools.ts")}`;

/** The buttons in a text: their labels and commands. */
function buttons(text: string): [string, string][] {
  return [...text.matchAll(/\[([^\]]+)\]\(command:([\w.]+)[^)]*\)/g)].map((found) => [found[1] ?? "", found[2] ?? ""]);
}

describe("the manifest", () => {
  it("contributes only commands that are implemented", () => {
    for (const command of contributed.keys()) {
      expect(implemented, command).toContain(`"${command}"`);
    }
  });

  it("has buttons for commands that it contributes, with their titles", () => {
    const texts = [...steps.map((step) => step.description), ...contributes.viewsWelcome.map((welcome) => welcome.contents)];
    const ours = texts.flatMap(buttons).filter(([, command]) => !command.startsWith("workbench."));
    expect(ours.length).toBeGreaterThan(8);
    for (const [label, command] of ours) {
      expect(contributed.get(command)?.toLowerCase(), command).toBe(label.toLowerCase());
    }
  });
});

describe("the walkthrough", () => {
  it("has no code in its descriptions, where VS Code shows backticks as they are", () => {
    expect(steps.filter((step) => step.description.includes("`")).map((step) => step.id)).toEqual([]);
  });

  it("tells the first minutes in order", () => {
    expect(steps.map((step) => step.id)).toEqual(["install", "example", "project", "check", "findings", "look", "compiled", "ci", "compare"]);
  });

  it("ticks a step off by a button of it, or a view that exists", () => {
    const views = Object.values(contributes.views).flat().map((view) => view.id);
    for (const { id, description, completionEvents = [] } of steps) {
      const offered = buttons(description).map(([, command]) => command);
      expect(completionEvents.length, id).toBeGreaterThan(0);
      for (const event of completionEvents) {
        const [kind, name = ""] = event.split(":");
        const known = { onCommand: contributed.has(name), onView: views.includes(name), onContext: read("src/firstMinutes.ts").includes(`"${name}"`) };
        expect(known[kind as keyof typeof known], event).toBe(true);
      }
      const isOffered = (event: string): boolean => event.startsWith("onContext:") || offered.includes(event.replace("onCommand:", ""));
      expect(completionEvents.some(isOffered), id).toBe(true);
    }
  });
});

describe("the tools of the first minutes", () => {
  it("are commands of the palette", () => {
    for (const { command, title } of Object.values(TOOLS)) {
      expect(contributed.get(command)?.toLowerCase()).toBe(title);
    }
  });
});
