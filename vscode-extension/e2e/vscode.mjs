// VS Code, served to a browser. Exports: startServer, until, Window.
import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { basename, dirname, join } from "node:path";

const TIMEOUT = 60_000;

// Servers have their own process groups, so an interrupted test has to end them.
const running = new Set();
process.on("exit", () => {
  for (const child of running) {
    process.kill(-child.pid, "SIGKILL");
  }
});
for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]]) {
  process.on(signal, () => process.exit(code));
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function succeeded(child, description) {
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`${description}: exit code ${code}`))));
  });
}

/** Starts VS Code's server with a fresh profile and the extension installed. Returns { port, pid, stop }. */
export async function startServer({ node, entry, vsix, folder, trust, env, settings }) {
  rmSync(folder, { recursive: true, force: true });
  const user = join(folder, "user");
  const extensions = join(folder, "extensions");
  mkdirSync(join(user, "User"), { recursive: true });
  mkdirSync(join(user, "Machine"), { recursive: true });
  mkdirSync(extensions, { recursive: true });
  const port = await freePort();
  const config = join(folder, "config.yaml");
  writeFileSync(config, `bind-addr: 127.0.0.1:${port}\nauth: none\ncert: false\n`);
  writeFileSync(join(user, "User", "settings.json"), JSON.stringify({
    "workbench.startupEditor": "none",
    "telemetry.telemetryLevel": "off",
    "chat.disableAIFeatures": true,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.colorTheme": "Default Dark Modern",
    "terminal.integrated.gpuAcceleration": "off", // so that its text is in the page, where a test can read it
    "editor.minimap.enabled": false,
    "editor.fontSize": 13,
    "editor.hover.above": false, // so that screenshots also show the lens above the line
    "workbench.reduceMotion": "on", // no half-faded elements in screenshots
    "git.openRepositoryInParentFolders": "never",
    "security.workspace.trust.startupPrompt": "never",
  }));
  // Not in the User settings: with those, about one start of the language server in twenty had a race.
  writeFileSync(join(user, "Machine", "settings.json"), JSON.stringify(settings));
  const common = ["--config", config, "--user-data-dir", user, "--extensions-dir", extensions];
  const environment = { ...process.env, ...env, EXTENSIONS_GALLERY: '{"serviceUrl":""}' };
  const options = { env: environment, stdio: ["ignore", "ignore", "inherit"] };
  await succeeded(spawn(node, [entry, ...common, "--install-extension", vsix], options), "installing the extension");
  const child = spawn(node, [
    entry, ...common, "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override",
    "--reconnection-grace-time", "2", ...(trust ? ["--disable-workspace-trust"] : []),
  ], { ...options, detached: true });
  running.add(child);
  child.on("exit", () => running.delete(child));
  const stop = () => new Promise((resolve) => {
    if (child.exitCode !== null) {
      resolve();
      return;
    }
    child.on("exit", () => resolve());
    process.kill(-child.pid, "SIGTERM");
  });
  try {
    await until(async () => (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined))?.ok, "VS Code's server");
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, pid: child.pid, stop };
}

/** Polls `condition` until it is true, and returns its value. */
export async function until(condition, description, timeout = TIMEOUT) {
  const end = Date.now() + timeout;
  for (;;) {
    const value = await condition();
    if (value) {
      return value;
    }
    if (Date.now() > end) {
      throw new Error(`timed out after ${timeout / 1000} s: ${description}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** One VS Code window, operated as by a user. */
export class Window {
  constructor(page, shots, port) {
    this.page = page;
    this.shots = shots;
    this.port = port;
    page.setDefaultTimeout(TIMEOUT);
  }

  static async open(browser, { port, workspace, file, shots }) {
    const page = await browser.newPage({ viewport: { width: 1360, height: 850 } });
    const window = new Window(page, shots, port);
    await window.goTo({ folder: workspace, file });
    return window;
  }

  /** Opens a `folder`, or the folders of a `workspace` file, in this window, with `file` in the editor. */
  async goTo({ folder, workspace, file }) {
    const payload = JSON.stringify([["openFile", `vscode-remote://127.0.0.1:${this.port}${file}`]]);
    const opened = folder === undefined ? `workspace=${encodeURIComponent(workspace)}` : `folder=${encodeURIComponent(folder)}`;
    await this.page.goto(`http://127.0.0.1:${this.port}/?${opened}&payload=${encodeURIComponent(payload)}`);
    await this.page.locator(".monaco-editor .view-line").first().waitFor();
  }

  /**
   * Opens the folders of a `workspace` file, of which `root` is one. On a busy machine, VS Code opens about one workspace in
   * four without its folders, whatever extensions are installed; loading the page again shows them.
   */
  async goToWorkspace({ workspace, file, root }) {
    const rootRow = this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: root }).first();
    for (let attempts = 3; attempts > 0; attempts -= 1) {
      await this.goTo({ workspace, file });
      if (await rootRow.waitFor({ timeout: TIMEOUT / 4 }).then(() => true, () => false)) {
        return;
      }
      console.log(`VS Code opened ${basename(workspace)} without its folders`);
    }
    throw new Error(`VS Code never showed ${root} of ${workspace}`);
  }

  async shot(name) {
    await this.page.screenshot({ path: join(this.shots, `${name}.png`), animations: "disabled" });
  }

  lens(title) {
    return this.page.locator(".codelens-decoration a", { hasText: title }).first();
  }

  /** Waits for an icon in the gutter, loaded. */
  async gutter(icon) {
    const isLoaded = async (name) => {
      const styles = [...document.querySelectorAll(".glyph-margin-widgets .cgmr")].map((one) => getComputedStyle(one).backgroundImage);
      const url = styles.find((style) => style.includes(name))?.replace(/^url\("|"\)$/g, "");
      const image = document.createElement("img");
      return url !== undefined && new Promise((resolve) => {
        image.onload = () => resolve(image.naturalWidth > 0);
        image.onerror = () => resolve(false);
        image.src = url;
      });
    };
    await until(() => this.page.evaluate(isLoaded, icon), `${icon} in the gutter`);
  }

  /** The summary above a region, which can't be clicked. */
  summary(text) {
    return this.page.locator(".codelens-decoration", { hasText: text }).first();
  }

  /** Finds the lens again for the click, because lenses are redrawn whenever they change. */
  async clickLens(title) {
    await this.lens(title).waitFor();
    await this.lens(title).click();
  }

  get statusBar() {
    return this.page.locator(".statusbar-item", { hasText: "MagPy" }).first();
  }

  async status(pattern, timeout = TIMEOUT) {
    await until(async () => pattern.test(await this.statusBar.innerText().catch(() => "")), `status bar ${pattern}`, timeout);
  }

  async text(selector) {
    return (await this.page.locator(selector).allInnerTexts()).join("\n").replaceAll("\u00a0", " ");
  }

  /** The visible text of the active terminal. */
  terminalText() {
    return this.text(".part.panel .xterm-rows:visible > div");
  }

  /** The visible text of the active editor. */
  editorText() {
    return this.text(".part.editor .editor-group-container.active .view-line");
  }

  /** Waits for a webview's frame that contains `selector`. */
  frameWith(selector) {
    return until(async () => {
      for (const frame of this.page.frames()) {
        if ((await frame.locator(selector).count().catch(() => 0)) > 0) {
          return frame;
        }
      }
      return undefined;
    }, `a webview with ${selector}`);
  }

  /** The first row of the MagPy tree that contains `text`. */
  row(text) {
    return this.page.locator(".pane-body .monaco-list-row", { hasText: text }).first();
  }

  async palette(text, label = text) {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget input.input");
    await input.waitFor();
    await input.fill(`>${text}`);
    const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: label }).first();
    await row.waitFor();
    await row.click();
  }

  /** Moves the cursor to the end of the file, where the example's `if __name__` is. */
  async goToEnd() {
    await this.page.locator(".monaco-editor .view-lines").first().click();
    await this.page.keyboard.press("Control+End");
  }

  /** Opens a file in its own tab, by its path in the workspace. */
  async openFile(path) {
    await this.page.keyboard.press("Control+p");
    const input = this.page.locator(".quick-input-widget input.input");
    await input.waitFor();
    await input.fill(path);
    const rows = this.page.locator(".quick-input-list .monaco-list-row");
    await rows.filter({ hasText: basename(path) }).filter({ hasText: dirname(path) }).first().click();
    await this.waitForActive(path);
  }

  async waitForActive(path) {
    await this.page.locator(`.tab.active .monaco-icon-label[aria-label*="/${path}"]`).waitFor();
  }

  /** Moves the cursor to a line, numbered from 1, and makes the line visible. */
  async goToLine(line) {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget input.input");
    await input.fill(`:${line}`);
    const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: new RegExp(`line ${line}\\b`) });
    await row.first().waitFor(); // before that, Enter goes to the list of commands
    await this.page.keyboard.press("Enter");
    await this.page.locator(".statusbar-item", { hasText: `Ln ${line}, ` }).waitFor();
  }

  /** The rectangle of `code` in the editor, in pixels; undefined while it is not visible. */
  place(code) {
    return this.page.evaluate((wanted) => {
      for (const line of document.querySelectorAll(":is(.part.editor, .notebookOverlay) .view-lines .view-line")) {
        const at = line.textContent.replaceAll("\u00a0", " ").indexOf(wanted);
        if (at < 0 || line.getClientRects().length === 0) {
          continue; // no rectangle: an editor that is hidden behind a notebook
        }
        const range = document.createRange();
        const walker = document.createTreeWalker(line, 4 /* text */);
        let before = 0;
        for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
          const end = before + node.length;
          if (at >= before && at < end) {
            range.setStart(node, at - before);
          }
          if (at + wanted.length > before && at + wanted.length <= end) {
            range.setEnd(node, at + wanted.length - before);
          }
          before = end;
        }
        const { x, y, width, height } = range.getBoundingClientRect();
        return { x, y, width, height };
      }
      return undefined;
    }, code);
  }

  /** Waits until exactly `code` is underlined with a `severity` (error, warning, info); returns its rectangle. */
  squiggle(severity, code) {
    return until(async () => {
      const place = await this.place(code);
      if (place === undefined) {
        return undefined;
      }
      for (const underline of await this.page.locator(`:is(.part.editor, .notebookOverlay) .cdr.squiggly-${severity}`).all()) {
        const box = await underline.boundingBox({ timeout: 1_000 }).catch(() => null);
        const near = (a, b) => Math.abs(a - b) < 3;
        if (box && near(box.x, place.x) && near(box.width, place.width) && box.y < place.y + place.height && place.y < box.y + box.height) {
          return place;
        }
      }
      return undefined;
    }, `a squiggle (${severity}) under: ${code}`);
  }

  /** Opens the Problems panel if it is hidden. */
  async openProblems() {
    const panel = this.page.locator(".markers-panel");
    if (!(await panel.isVisible())) {
      await this.page.keyboard.press("Control+Shift+M");
      await panel.waitFor();
    }
    return panel;
  }

  /** The row of the Problems panel that contains all `texts`. */
  async problem(...texts) {
    const panel = await this.openProblems();
    return texts.reduce((rows, text) => rows.filter({ hasText: text }), panel.locator(".monaco-list-row")).first();
  }

  async hidePanel() {
    await this.page.keyboard.press("Control+j");
    await this.page.locator(".part.panel").waitFor({ state: "hidden" });
  }

  async close() {
    await this.page.close();
  }
}
