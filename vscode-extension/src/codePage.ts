/** A finding code's page, as Markdown. Pure. */

import type { CodeInfo } from "./protocol";

export function codePage(info: CodeInfo): string {
  const parts = [`# ${info.code} ${info.name}`, `**${info.title}.** Severity: ${info.severity}.`];
  if (info.explanation !== "") {
    parts.push(info.explanation);
  }
  if (info.example !== "") {
    parts.push("## Example", "```python\n" + info.example.trimEnd() + "\n```");
  }
  if (info.hints.length > 0) {
    parts.push("## What to do", info.hints.map((hint) => `- ${hint}`).join("\n"));
  }
  parts.push(`[${info.url}](${info.url})`);
  return parts.join("\n\n") + "\n";
}

/** The code named by a diagnostic of ours. */
export function codeOf(diagnostic: { source?: string; code?: unknown }): string | undefined {
  if (diagnostic.source !== "magpy") {
    return undefined;
  }
  const { code } = diagnostic;
  const value = typeof code === "object" && code !== null && "value" in code ? code.value : code;
  return typeof value === "string" ? value : undefined;
}
