import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "node_modules/"] },
  js.configs.recommended,
  {
    files: ["**/*.ts"],
    extends: [...tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  {
    files: ["**/*.mjs", "e2e/**/*.cjs"],
    languageOptions: {
      globals: {
        process: "readonly", console: "readonly", setTimeout: "readonly", clearTimeout: "readonly", fetch: "readonly",
        URL: "readonly", require: "readonly", exports: "writable", document: "readonly", getComputedStyle: "readonly",
        window: "readonly", performance: "readonly", requestAnimationFrame: "readonly", WheelEvent: "readonly", PointerEvent: "readonly",
      },
    },
  },
);
