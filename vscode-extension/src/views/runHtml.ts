/** The page of the run view. Pure. It may load only its script. */

const STYLE = `
body { margin: 0; padding: 8px 14px; max-width: 560px; font-variant-numeric: tabular-nums; }
header { display: flex; gap: 8px; align-items: baseline; flex-wrap: wrap; }
h1 { font-size: 1.1em; margin: 0; flex: 1 1 auto; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
#state, caption, #empty { color: var(--vscode-descriptionForeground); }
#state[data-state="failed"] { color: var(--vscode-errorForeground); }
#head { margin: 8px 0 2px; font-size: 1.25em; min-height: 1.3em; }
ul { margin: 0 0 8px; padding: 0; list-style: none; line-height: 1.5; }
table { width: 100%; border-collapse: collapse; table-layout: fixed; }
caption { text-align: left; padding-bottom: 2px; }
th { font-weight: normal; text-align: left; width: 38%; padding: 1px 8px 1px 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
td { padding: 1px 0; }
td.figures { width: 8em; white-space: pre; padding-left: 8px; }
.track { height: 0.75em; background: var(--vscode-editorWidget-border, #8884); }
.bar { height: 100%; background: var(--vscode-charts-blue, var(--vscode-progressBar-background)); }
body.vscode-high-contrast .track, body.vscode-high-contrast-light .track { background: none; outline: 1px solid var(--vscode-contrastBorder); }
button { font: inherit; cursor: pointer; border: 1px solid var(--vscode-button-border, transparent); border-radius: 3px; padding: 2px 8px;
  color: var(--vscode-button-secondaryForeground); background: var(--vscode-button-secondaryBackground); }
:focus-visible { outline: 1px solid var(--vscode-focusBorder); }
[hidden] { display: none; }
`;

export function runHtml(options: { script: string; source: string; nonce: string }): string {
  const { script, source, nonce } = options;
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}' ${source}; base-uri 'none'; form-action 'none'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>MagPy: Run</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<p id="empty">No program is running compiled. <em>MagPy: Run Compiled</em> starts one.</p>
<main id="run" hidden>
<header>
<h1 id="title"></h1>
<span id="state" role="status" aria-live="polite"></span>
<button id="cancel" type="button">Cancel</button>
<button id="report" type="button">Report</button>
</header>
<p id="head"></p>
<ul id="lines"></ul>
<table id="bars"><caption></caption><tbody></tbody></table>
</main>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>
`;
}
