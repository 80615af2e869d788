/** Finding codes of diagnostics. Pure. */

/** The code named by a diagnostic of ours. */
export function codeOf(diagnostic: { source?: string; code?: unknown }): string | undefined {
  if (diagnostic.source !== "magpy") {
    return undefined;
  }
  const { code } = diagnostic;
  const value = typeof code === "object" && code !== null && "value" in code ? code.value : code;
  return typeof value === "string" ? value : undefined;
}
