// Bundles the extension into dist/extension.js. Flags: --production (minified, no source map), --watch.
import { context } from "esbuild";

const production = process.argv.includes("--production");
const bundle = await context({
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
  minify: production,
  sourcemap: production ? false : "linked",
  sourcesContent: false,
  logLevel: "warning",
});
if (process.argv.includes("--watch")) {
  await bundle.watch();
} else {
  await bundle.rebuild();
  await bundle.dispose();
}
