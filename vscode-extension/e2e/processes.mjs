// What runs on the machine, from Linux's /proc. Exports: descendants, alive, languageServers.
import { readdirSync, readFileSync } from "node:fs";

function read(pid, name) {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return ""; // it has just ended
  }
}

/** [state, parent] of a process; its name, in parentheses before them, may hold anything. */
function stat(pid) {
  const [state, parent] = read(pid, "stat").split(") ").at(-1).split(" ");
  return [state ?? "", Number(parent)];
}

/** Everything below the process `root`, zombies left out. */
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

/** MagPy's language servers below the process `root`; a child between fork and exec still looks like its parent. */
export function languageServers(root) {
  const found = descendants(root).filter((pid) => read(pid, "cmdline").includes("lsp_server.server.main"));
  return found.filter((pid) => !found.includes(stat(pid)[1]));
}
