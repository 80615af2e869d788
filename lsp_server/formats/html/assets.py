"""Style and script of the page. They are part of it: the page loads nothing. Key names: STYLE, SCRIPT."""

from __future__ import annotations

_DARK = """--bg: #0d1117; --fg: #e6edf3; --soft: #9198a1;
  --line: #3d444d; --panel: #151b23; --accent: #4493f8; --error: #f85149; --warning: #d29922; --information: #4493f8;
  --hint: #9198a1; --good: #3fb950; --node: #121d2f; --node-line: #1f6feb; --read: #2e2411; --read-line: #9e6a03;
  --input: #212830; --mark: #2e2a1a;
  --part0: #4493f8; --part1: #f0883e; --part2: #3fb950; --part3: #ab7df8; --part4: #f778ba; --part5: #d29922;
  --others: #9198a1; --rest: #545d68;"""

STYLE = """
:root { color-scheme: light dark; --bg: #ffffff; --fg: #1c2128; --soft: #59636e; --line: #d1d9e0; --panel: #f6f8fa;
  --accent: #0969da; --error: #cf222e; --warning: #9a6700; --information: #0969da; --hint: #57606a; --good: #1a7f37;
  --node: #ddf4ff; --node-line: #54aeff; --read: #fff1cc; --read-line: #bf8700; --input: #eef1f4; --mark: #fff8c5;
  --part0: #0969da; --part1: #bc4c00; --part2: #1a7f37; --part3: #8250df; --part4: #bf3989; --part5: #7d4e00;
  --others: #6e7781; --rest: #afb8c1; }
@media screen and (prefers-color-scheme: dark) { :root:not([data-theme=light]) { DARK } }
@media screen { :root[data-theme=dark] { color-scheme: dark; DARK } }
:root[data-theme=light] { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, sans-serif; }
main, header { max-width: 1180px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 24px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 10px; }
h3 { font-size: 16px; margin: 22px 0 8px; }
nav { display: flex; flex-wrap: wrap; gap: 14px; margin: 12px 0; } a { color: var(--accent); }
button { font: inherit; color: var(--fg); background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
  padding: 3px 10px; cursor: pointer; } button:hover, button:focus-visible { border-color: var(--accent); }
input { font: inherit; color: var(--fg); background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
  padding: 3px 10px; }
.soft { color: var(--soft); } .good { color: var(--good); } 
.error { color: var(--error); } .warning { color: var(--warning); }
.information { color: var(--information); } .hint { color: var(--hint); }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 10px; padding: 0 8px; font-size: 12px;
  margin-right: 6px; white-space: nowrap; }
code, pre, .mono { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { color: inherit; background: none; padding: 0; }
body { overflow-wrap: anywhere; } th, td .mono { overflow-wrap: break-word; }
td.error, td.warning, td.information, td.hint, td.good, td.code { white-space: nowrap; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; margin: 8px 0; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; padding: 5px 10px; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child > td { border-bottom: 0; } th { background: var(--panel); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; } td.number { white-space: nowrap; }
td:first-child { min-width: 9em; }
details > summary { cursor: pointer; padding: 4px 0; } details pre { margin: 0; padding: 10px 12px; }
.file { border: 1px solid var(--line); border-radius: 8px; margin: 10px 0; overflow: hidden; }
.file > summary { background: var(--panel); padding: 7px 12px; }
.lines { overflow-x: auto; } .row { display: flex; white-space: pre; min-width: max-content; }
.row .no { flex: 0 0 56px; text-align: right; padding-right: 14px; color: var(--soft); user-select: none; }
.row .guards { flex: 0 0 74px; color: var(--hint); font-size: 11px; user-select: none; }
.row .costs { flex: 0 0 86px; padding-right: 10px; }
.cost { display: block; padding: 0 4px; border-radius: 3px; font-size: 11px; line-height: 1.75; text-align: right;
  white-space: nowrap; font-variant-numeric: tabular-nums; print-color-adjust: exact;
  background: linear-gradient(to left, color-mix(in srgb, var(--heat) 42%, transparent) var(--part), transparent var(--part))
    color-mix(in srgb, var(--heat) 10%, transparent); color: var(--fg); }
.cost.step { --heat: var(--error); } .cost.region { --heat: var(--part0); } .cost.again { --heat: var(--warning); }
.cost.device { --heat: var(--part3); }
.legend ul { list-style: none; margin: 4px 0 10px; padding: 0; } .legend p { margin: 0; } .legend li { margin: 2px 0; }
.legend .cost { display: inline-block; width: 76px; margin-right: 6px; }
.row.marked { background: var(--mark); } .row:target { outline: 2px solid var(--accent); outline-offset: -2px; }
.row u { text-decoration: underline wavy; text-underline-offset: 3px; text-decoration-thickness: 1px; }
.row u.fact { text-decoration: underline dotted var(--soft); }
.gap { color: var(--soft); padding: 2px 0 2px 130px; background: var(--panel); font-size: 12px; }
.note { border-left: 3px solid currentColor; margin: 2px 16px 6px 130px; padding: 2px 12px; max-width: 900px;
  background: var(--panel); } .note p { margin: 2px 0; color: var(--fg); font: 14px/1.5 system-ui, sans-serif; }
.note { white-space: normal; overflow-wrap: anywhere; } .note .soft { color: var(--soft); }
.note > summary { color: var(--fg); font: 14px/1.5 system-ui, sans-serif; } .fact:not([open]) { border-color: var(--line); }
.note b { font-weight: 600; }
.picture { max-height: 620px; overflow: auto; background: var(--bg); }
.listing { position: relative; max-height: 320px; overflow: auto; border: 1px solid var(--line); border-radius: 8px;
  margin: 8px 0; padding: 6px 0; } .listing div { padding: 0 12px 0 30px; text-indent: -18px; }
.listing i { font-style: normal; color: var(--soft); } .listing b { font-weight: 600; }
.listing .match { background: var(--mark); }
.listing .current { outline: 2px solid var(--accent); outline-offset: -2px; background: var(--mark); }
.search { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin: 8px 0; }
.search input { flex: 1 1 140px; max-width: 300px; min-width: 0; }
svg text { font: 12px system-ui, sans-serif; fill: var(--fg); }
svg .small { font-size: 10px; fill: var(--soft); } svg .node rect { fill: var(--node); stroke: var(--node-line); }
svg .read rect { fill: var(--read); stroke: var(--read-line); }
svg .placeholder rect { fill: var(--input); stroke: var(--line); }
svg g.match rect { stroke: var(--part1); stroke-width: 3; } svg g.current rect { fill: var(--mark); stroke: var(--accent);
  stroke-width: 4; }
svg .edge { fill: none; stroke: var(--soft); stroke-width: 1; opacity: .65; } svg a:hover rect { stroke-width: 2.5; }
svg .cut { stroke: var(--warning); stroke-dasharray: 5 4; }
svg .recorded { fill: var(--warning); } svg .replayed { fill: var(--good); } svg .watched { fill: var(--information); }
svg .plain { fill: var(--error); }
svg .part0 { fill: var(--part0); } svg .part1 { fill: var(--part1); } svg .part2 { fill: var(--part2); }
svg .part3 { fill: var(--part3); } svg .part4 { fill: var(--part4); } svg .part5 { fill: var(--part5); }
svg .others { fill: var(--others); } svg .rest { fill: var(--rest); } svg .backward { fill-opacity: .55; }
svg .flame { stroke: var(--bg); } svg text[class^=in-part], svg text.in-others { fill: var(--bg); font-weight: 600; }
svg .unassigned { fill: none; stroke: var(--line); } svg .flame.rest { fill-opacity: .35; }
svg .flame.graph { fill-opacity: .6; }
svg .step-plain { fill: var(--information); } svg .step-compiled { fill: var(--good); }
svg .step-mixed { fill: var(--hint); }
svg .step-waited { fill: var(--warning); } svg .grid { stroke: var(--line); } svg .median { stroke: var(--soft);
  stroke-dasharray: 2 4; } svg .event { stroke: var(--accent); stroke-dasharray: 5 4; }
svg .life { stroke: var(--good); stroke-width: 3; opacity: .5; }
.roofline { display: block; width: 100%; max-width: 540px; margin: 10px 0; }
svg.roofline .small { font-size: 11.5px; }
svg .roof { stroke: var(--fg); stroke-width: 1.3; } svg [class^=limit-] { fill-opacity: .75; stroke: var(--bg);
  stroke-width: .7; } svg .limit-memory { fill: var(--part0); } svg .limit-compute { fill: var(--part1); }
svg .limit-launch { fill: var(--others); }
li.inner { list-style: none; margin-left: 1em; }
.key { white-space: nowrap; }
@media screen and (max-width: 900px) {
  main, header { padding: 0 10px; }
  thead { display: none; } tbody, tr { display: block; }
  tr { padding: 6px 10px; border-bottom: 1px solid var(--line); } tbody:last-child > tr:last-child { border-bottom: 0; }
  td, td.number { display: block; position: relative; padding: 2px 0 2px 7.5em; border: 0; text-align: left;
    white-space: normal; }
  td .mono { overflow-wrap: anywhere; } li.inner { list-style: none; margin-left: 1em; }
.key { white-space: normal; }
  table:has(td.number) td { padding-left: 10.8em; } /* "forward + backward" */
  td::before { content: attr(data-label); position: absolute; left: 0; color: var(--soft); }
  td:empty { display: none; }
  .row .no { flex-basis: 40px; padding-right: 8px; } .row .guards { display: none; }
  .row .costs { flex-basis: 66px; padding-right: 6px; } .row .cost { font-size: 10px; padding: 0 2px; }
  .gap, .note { padding-left: 10px; margin-left: 10px; margin-right: 10px; }
}
@media print {
  :root { color-scheme: light; }
  body { font-size: 11px; } main, header { max-width: none; padding: 0; } h1 { font-size: 18px; } h2 { font-size: 15px; }
  h3 { font-size: 12.5px; } h2, h3, summary { break-after: avoid; } code, pre, .mono { font-size: 9.5px; }
  nav, button, input, .search { display: none; }
  .scroll, .lines, .file, .listing, .picture { overflow: visible; max-height: none; }
  .picture.large { display: none; }
  svg { max-width: 100%; height: auto; print-color-adjust: exact; break-inside: avoid; }
  table { font-size: 9.5px; } th, td { padding: 3px 5px; } td:first-child { min-width: 7em; } tr { break-inside: avoid; }
  td.number { white-space: normal; overflow-wrap: normal; }
  pre, .row { white-space: pre-wrap; overflow-wrap: anywhere; }
  .row { min-width: 0; } .row .text { flex: 1; min-width: 0; } .row .no { flex-basis: 34px; padding-right: 8px; }
  .row .guards { flex-basis: 54px; font-size: 9px; } .row .costs { flex-basis: 66px; } .cost { font-size: 9px; }
  .gap, .note { margin-left: 34px; padding-left: 10px; } .note p, .note > summary { font-size: 10.5px; }
  .row.marked, .badge { print-color-adjust: exact; } a { text-decoration: none; }
}
""".replace("DARK", _DARK)

SCRIPT = """
const root = document.documentElement;
document.getElementById('theme').addEventListener('click', () => {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
});
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
  target.scrollIntoView({block: 'center'});
}
addEventListener('hashchange', reveal); reveal();
const opened = [];
addEventListener('beforeprint', () => {
  for (const closed of document.querySelectorAll('details:not([open])')) { closed.open = true; opened.push(closed); }
});
addEventListener('afterprint', () => { for (const one of opened.splice(0)) one.open = false; });
for (const box of document.querySelectorAll('input.filter')) box.addEventListener('input', () => {
  const wanted = box.value.toLowerCase(), within = document.getElementById(box.dataset.rows);
  for (const row of within.querySelectorAll('tbody tr')) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  for (const facts of within.querySelectorAll('.facts')) facts.open = wanted !== '';
});
const within = (area, part) => {
  const outer = area.getBoundingClientRect(), inner = part.getBoundingClientRect();
  area.scrollTop += inner.top + inner.height / 2 - outer.top - area.clientHeight / 2;
  area.scrollLeft += part.tagName === 'g' ? inner.left + inner.width / 2 - outer.left - area.clientWidth / 2 : 0;
};
for (const graph of document.querySelectorAll('.graph')) {
  const box = graph.querySelector('.find'), told = graph.querySelector('.found'), list = graph.querySelector('.listing');
  let rows, texts, shapes, found = [], at = -1;
  const prepare = () => {
    rows = [...list.children];
    texts = rows.map(row => [...row.childNodes].filter(part => part.tagName !== 'I').map(part => part.textContent)
      .join('').toLowerCase());
    shapes = new Map();
    for (const shape of graph.querySelectorAll('g[data-n]'))
      for (const name of shape.dataset.n.split(' ')) shapes.set(name, shape);
  };
  const parts = row => [row, shapes.get(row.dataset.n)].filter(Boolean);
  const go = to => {
    for (const part of graph.querySelectorAll('.current')) part.classList.remove('current');
    if (!found.length) return;
    at = (to + found.length) % found.length;
    for (const part of parts(found[at])) {
      part.classList.add('current');
      within(part === found[at] ? list : graph.querySelector('.picture'), part);
    }
    told.textContent = `${(at + 1).toLocaleString('en')} of ${found.length.toLocaleString('en')}`;
  };
  const search = () => {
    if (!rows) prepare();
    for (const part of graph.querySelectorAll('.match')) part.classList.remove('match');
    const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
    found = words.length ? rows.filter((_, n) => words.every(word => texts[n].includes(word))) : [];
    for (const row of found) for (const part of parts(row)) part.classList.add('match');
    told.textContent = words.length ? 'no match' : '';
    go(0);
  };
  box.addEventListener('input', search);
  box.addEventListener('keydown', event => {
    const steps = {Enter: event.shiftKey ? -1 : 1, ArrowDown: 1, ArrowUp: -1};
    if (event.key === 'Escape') { box.value = ''; search(); }
    else if (!(event.key in steps)) return;
    else go(at + steps[event.key]);
    event.preventDefault();
  });
  graph.querySelector('.before').addEventListener('click', () => go(at - 1));
  graph.querySelector('.next').addEventListener('click', () => go(at + 1));
}
"""
