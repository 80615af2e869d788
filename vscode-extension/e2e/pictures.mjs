// Replaces the pictures of the documentation, the README and the walkthrough by what the tests have seen. Exports: replacePictures.
import { execFileSync } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const OF_EXTENSION = { check: "06-graph-break", graph: "14-graph", compiled: "11-table", triton: "34-line-to-kernel" };
const OF_DOCS = { vscode: "07-hover" };

export async function replacePictures({ browser, python, env, workspace, shots, extension, repository }) {
  const docs = join(repository, "docs", "images");
  for (const [folder, pictures] of [[join(extension, "images"), OF_EXTENSION], [docs, OF_DOCS]]) {
    for (const [picture, shot] of Object.entries(pictures)) {
      cpSync(join(shots, `${shot}.png`), join(folder, `${picture}.png`));
    }
  }
  await picturePage({ browser, python, env, program: join(workspace, "early_exit"), into: join(docs, "html-report.png") });
}

/** The upper part of the page that `--html` writes for a compiled run. */
export async function picturePage({ browser, python, env, program, into }) {
  const line = ["-P", "-m", "lsp_server.cli", "run", "train.py", "--steps", "60", "--compile", "foreground", "--html", "report"];
  execFileSync(python, line, { cwd: program, env: { ...process.env, ...env }, stdio: "ignore" });
  const page = await browser.newPage({ viewport: { width: 1200, height: 1500 }, colorScheme: "light" });
  await page.goto(pathToFileURL(join(program, "report", "index.html")).href);
  await page.screenshot({ path: into });
  await page.close();
}
