/** The page of the graph's webview. Pure. It may load only its script. */

const STYLE = `
body { margin: 0; padding: 0; height: 100vh; display: flex; flex-direction: column; overflow: hidden; }
header { display: flex; gap: 8px; align-items: center; padding: 6px 10px; flex-wrap: wrap; }
#title { flex: 1 1 220px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
#found { min-width: 80px; color: var(--vscode-descriptionForeground); }
input, select, button { font: inherit; color: var(--vscode-input-foreground); background: var(--vscode-input-background);
  border: 1px solid var(--vscode-input-border, var(--vscode-editorWidget-border, #8886)); border-radius: 3px; padding: 2px 6px; }
select { color: var(--vscode-dropdown-foreground); background: var(--vscode-dropdown-background); }
button { cursor: pointer; min-width: 26px; }
:focus-visible { outline: 1px solid var(--vscode-focusBorder); }
main { position: relative; flex: 1 1 auto; min-height: 0; }
canvas { position: absolute; inset: 0; width: 100%; height: 100%; touch-action: none; }
#tip { position: absolute; max-width: 70%; padding: 6px 8px; pointer-events: none; white-space: pre-wrap; overflow-wrap: anywhere;
  color: var(--vscode-editorHoverWidget-foreground); background: var(--vscode-editorHoverWidget-background);
  border: 1px solid var(--vscode-editorHoverWidget-border); border-radius: 3px; font-family: var(--vscode-editor-font-family); }
[hidden] { display: none; }
`;

export function graphHtml(options: { script: string; source: string; nonce: string }): string {
  const { script, source, nonce } = options;
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}' ${source}; base-uri 'none'; form-action 'none'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>MagPy graph</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<header>
<span id="title" role="heading" aria-level="1"></span>
<button id="rest" type="button" hidden title="Open as text, with every node"></button>
<select id="kind" aria-label="Which graph"><option value="operators">Operator graph</option><option value="references">Reads and writes</option></select>
<select id="capture" aria-label="Capture"></select>
<input id="search" type="search" placeholder="Search (Enter: next)" aria-label="Search nodes" spellcheck="false">
<span id="found" role="status" aria-live="polite"></span>
<button id="out" type="button" title="Zoom out (-)" aria-label="Zoom out">−</button>
<button id="in" type="button" title="Zoom in (+)" aria-label="Zoom in">+</button>
<button id="whole" type="button" title="Whole graph (0)">Fit</button>
</header>
<main><canvas id="graph" tabindex="0" role="img" aria-label="Graph; search for a node to have it read aloud"></canvas><div id="tip" hidden></div></main>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>
`;
}
