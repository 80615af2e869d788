// The machine's processes, read from Linux's /proc. Exports: descendants, alive, languageServers.
import { readdirSync, readFileSync } from "node:fs";

function read(pid, name) {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return ""; // the process has ended
  }
}

/** [state, parent] of a process. They follow its name, which is in parentheses and may contain anything. */
function stat(pid) {
  const [state, parent] = read(pid, "stat").split(") ").at(-1).split(" ");
  return [state ?? "", Number(parent)];
}

/** All descendants of the process `root`, without zombies. */
export function descendants(root) {
  const children = new Map();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number)) {
    const [state, parent] = stat(pid);
    if (state !== "" && state !== "Z") {
      children.set(parent, [...(children.get(parent) ?? []), pid]);
    }
  }
  const found = [];
  for (let next = [root]; next.length > 0;) {
    next = next.flatMap((pid) => children.get(pid) ?? []);
    found.push(...next);
  }
  return found;
}

export function alive(pid) {
  return !["", "Z"].includes(stat(pid)[0]);
}

/** MagPy's language servers below the process `root`, without their children, which look like their parent between fork and exec. */
export function languageServers(root) {
  const found = descendants(root).filter((pid) => /lsp_server\.server\.main|bundled\/magpy\.py\0server/.test(read(pid, "cmdline")));
  return found.filter((pid) => !found.includes(stat(pid)[1]));
}
