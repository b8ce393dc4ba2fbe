/** How the page of a report looks, by day and by night. */

export const pageStyle = `
:root { color-scheme: light dark; --ground: #fff; --ink: #1d2530; --quiet: #5b6570; --rule: #d8dde3; --good: #1a7f37; --bad: #c62828;
  --band: #f2a33a33; --fault: #f2a33aaa; --c0: #1f77b4; --c1: #d9580d; --c2: #8a5fbf; --c3: #7a7f87; --c4: #2a9d4e; --c5: #c2185b; --c6: #00838f; --c7: #9e7700;
  --c8: #5d4037; --c9: #3949ab; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181d; --ink: #dde3ea; --quiet: #8b96a3; --rule: #2c343d; --good: #4cc06a;
  --bad: #ff6b6b; --band: #f2a33a2b; --fault: #f2a33a99; --c0: #5aa9e6; --c1: #ff9248; --c2: #b794f6; --c3: #9aa3ad; --c4: #5fd08a; --c5: #f06fa4; --c6: #4dd0e1;
  --c7: #e3b341; --c8: #bc9b8f; --c9: #8c9eff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 84rem; background: var(--ground); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.quiet, .note { color: var(--quiet); }
.good { color: var(--good); } .bad { color: var(--bad); }
.findings { margin: .75rem 0; padding: .6rem 1rem .6rem 2rem; border-left: 3px solid var(--c1); } details { margin: .5rem 0; }
p.about { white-space: pre-wrap; max-width: 60rem; }
table { border-collapse: collapse; } .scroll { overflow-x: auto; max-height: 30rem; }
th, td { text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
th { font-weight: 600; } .number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: .5rem 0 0; min-width: 0; } figcaption { font-weight: 600; }
#charts { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem 1.5rem; } figure.main, figure.wide { grid-column: 1 / -1; }
.plots { display: grid; gap: 1rem; } .runs-2 { grid-template-columns: 1fr 1fr; }
.plots > * { min-width: 0; } .plots p { margin: 0; }
.plot { overflow: hidden; touch-action: pan-y; } .plot:focus-visible, button:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
.uplot, .u-wrap { position: relative; user-select: none; } .uplot canvas { display: block; position: relative; width: 100%; height: 100%; }
.u-under, .u-over, .u-axis { position: absolute; } .u-under { overflow: hidden; } .u-over { cursor: crosshair; }
.u-select { position: absolute; pointer-events: none; background: var(--c0); opacity: .2; }
.u-cursor-x, .u-cursor-y, .u-cursor-pt { position: absolute; left: 0; top: 0; pointer-events: none; will-change: transform; }
.u-cursor-x { height: 100%; border-right: 1px dashed var(--quiet); } .u-cursor-y, .u-off { display: none; }
.u-cursor-pt { border-radius: 50%; background-clip: padding-box !important; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem .5rem; align-items: center; min-height: 1.9rem; }
button { font: inherit; font-size: .85rem; color: inherit; background: none; border: 1px solid var(--rule); border-radius: .3rem; padding: .05rem .45rem; cursor: pointer; }
button[aria-pressed=false] { text-decoration: line-through; opacity: .7; }
.tools { position: sticky; top: 0; background: var(--ground); padding: .35rem 0; display: flex; gap: 1rem; align-items: center; min-height: 2.4rem; }
.swatch { display: inline-block; width: .7rem; height: .7rem; border-radius: .15rem; margin-right: .35rem; background: currentColor; }
.value { font-variant-numeric: tabular-nums; font-weight: 600; }
.idle { visibility: hidden; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); } .c4 { color: var(--c4); }
.c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); } .c8 { color: var(--c8); } .c9 { color: var(--c9); }
@media (max-width: 50rem) { body { padding: 1rem; } .runs-2, #charts { grid-template-columns: 1fr; } .scroll { max-height: none; }
  .tools .quiet { display: none; } th, td { padding-right: .6rem; overflow-wrap: anywhere; } th, .number { white-space: nowrap; overflow-wrap: normal; }
  tr > :first-child { overflow-wrap: normal; } }
`;
