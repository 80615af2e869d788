// Bundles the extension into dist/extension.js, and the scripts of the webviews into dist/graph.js and dist/run.js.
// Flags: --production (minified, no source map), --watch.
import { context } from "esbuild";

const production = process.argv.includes("--production");
const common = {
  bundle: true,
  minify: production,
  sourcemap: production ? false : "linked",
  sourcesContent: false,
  logLevel: "warning",
};
const bundles = await Promise.all([
  context({
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["vscode"],
  }),
  context({
    ...common,
    entryPoints: ["src/webview/graph.ts", "src/webview/run.ts"],
    outdir: "dist",
    platform: "browser",
    target: "es2022",
    format: "iife",
  }),
]);
for (const bundle of bundles) {
  if (process.argv.includes("--watch")) {
    await bundle.watch();
  } else {
    await bundle.rebuild();
    await bundle.dispose();
  }
}
