// Replaces the pictures of the documentation, the README and the walkthrough by what the tests have seen. Exports: replacePictures,
// PICTURED: the stories that show what is in them.
import { Buffer } from "node:buffer";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const upng = createRequire(import.meta.url)("upng-js");
const OF_EXTENSION = { check: "06-graph-break", graph: "14-graph", compiled: "11-table", triton: "34-line-to-kernel" };
const OF_DOCS = { vscode: "07-hover", "run-view": "40-run-view" };
export const PICTURED = [
  "opens", "checks", "showsNoFacts", "marksGraphBreak", "hoversOverGraphBreak", "explains", "showsTree", "drawsGraph", "runsCompiled",
  "showsRunView", "showsTriton", "marksInStep",
];
const COLORS = 256;
const LARGEST = 200 * 1024;
const ROWS = 30;
const COLUMNS = 90;

export async function replacePictures({ browser, python, env, workspace, shots, extension, repository, entry }) {
  const docs = join(repository, "docs", "images");
  for (const [folder, pictures] of [[join(extension, "images"), OF_EXTENSION], [docs, OF_DOCS]]) {
    for (const [picture, shot] of Object.entries(pictures)) {
      if (existsSync(join(shots, `${shot}.png`))) { // else MAGPY_E2E_ONLY has left it out
        write(readFileSync(join(shots, `${shot}.png`)), join(folder, `${picture}.png`));
      }
    }
  }
  await picturePage({ browser, python, env, program: join(workspace, "early_exit"), into: join(docs, "html-report.png") });
  await pictureTerminal({ browser, python, env, program: join(workspace, "training"), entry, into: join(docs, "run-panel.png") });
}

/** The upper part of the page that `--html` writes for a compiled run. */
export async function picturePage({ browser, python, env, program, into }) {
  const line = ["-P", "-m", "lsp_server.cli", "run", "train.py", "--steps", "60", "--compile", "foreground", "--html", "report"];
  execFileSync(python, line, { cwd: program, env: { ...process.env, ...env }, stdio: "ignore" });
  const page = await browser.newPage({ viewport: { width: 1200, height: 1500 }, colorScheme: "light" });
  await page.goto(pathToFileURL(join(program, "report", "index.html")).href);
  write(await page.screenshot(), into);
  await page.close();
}

/** A terminal in which a program runs compiled, with the panel below its output, drawn by the terminal of VS Code. */
export async function pictureTerminal({ browser, python, env, program, entry, into }) {
  rmSync(join(program, "finish"), { force: true }); // of the story before
  const folder = mkdtempSync(join(tmpdir(), "magpy-picture-"));
  const recorded = join(folder, "terminal");
  const record = join(dirname(fileURLToPath(import.meta.url)), "record.py");
  const command = [python, "-P", "-m", "lsp_server.cli", "run", "train.py", "--compile", "foreground"];
  execFileSync(python, [record, recorded, String(ROWS), String(COLUMNS), "saved [\\d.]+ s so far.*╯", ...command], {
    cwd: program, env: { ...process.env, ...env }, stdio: "inherit",
  });
  const xterm = join(dirname(entry), "..", "..", "lib", "vscode", "node_modules", "@xterm", "xterm");
  const page = await browser.newPage({ viewport: { width: 1000, height: 700 } });
  await page.setContent("<body style='margin:0;background:#181818'><div id='terminal' style='display:inline-block;padding:12px'></div></body>");
  await page.addStyleTag({ path: join(xterm, "css", "xterm.css") });
  await page.addScriptTag({ path: join(xterm, "lib", "xterm.js") });
  await page.evaluate(([bytes, rows, cols]) => new Promise((done) => {
    const options = { rows, cols, scrollback: 0, fontSize: 14, fontFamily: "DejaVu Sans Mono, monospace", theme: { background: "#181818" } };
    const terminal = new window.Terminal(options);
    terminal.open(document.getElementById("terminal"));
    terminal.write("$ magpy-lsp run train.py\r\n");
    terminal.write(Uint8Array.from(bytes), done);
  }), [[...readFileSync(recorded)], ROWS, COLUMNS]);
  write(await page.locator("#terminal").screenshot({ animations: "disabled" }), into);
  await page.close();
  rmSync(folder, { recursive: true });
}

/** With few colors, which is enough for text: a fifth of the size. */
function write(png, into) {
  const image = upng.decode(png);
  writeFileSync(into, Buffer.from(upng.encode(upng.toRGBA8(image), image.width, image.height, COLORS)));
  const { size } = statSync(into);
  if (size > LARGEST) {
    throw new Error(`${into} has ${size} bytes, more than ${LARGEST}`);
  }
}
