// @ts-check
// A small writer of SVG plots: panels above each other over the same time, each with its own scale. Colours follow the
// reader's choice of light or dark; the two of the series are told apart by those, too, who see red and green alike.

/**
 * @typedef {object} Scale
 * @property {'linear' | 'log'} kind
 * @property {number} from
 * @property {number} to
 * @property {{ at: number, label: string }[]} ticks
 */

/**
 * @typedef {object} Series
 * @property {0 | 1} look which of the two looks it has
 * @property {'steps' | 'bars'} kind `steps`: a value holds until the next. `bars`: each from the bottom of the panel
 * @property {{ x: number, y: number }[]} points in the order of x
 */

/**
 * @typedef {object} Panel
 * @property {string} title
 * @property {number} height
 * @property {Scale} scale
 * @property {Series[]} series
 * @property {{ at: number, label: string }[]} [rules] lines across, with their meaning
 * @property {{ look: 0 | 1, x: number }[]} [crosses] at the upper edge
 */

/**
 * @typedef {object} Plot
 * @property {string} title
 * @property {string} description for those who can't see it
 * @property {string} xLabel
 * @property {number} xTo the scale begins with 0
 * @property {number} xStep between ticks
 * @property {string[]} legend the names of the looks
 * @property {Panel[]} panels
 */

const width = 760;
const left = 64;
const right = 44;
const top = 78;
const betweenPanels = 44;
const bottom = 44;
const plotWidth = width - left - right;

const style = `
.back{fill:#fff}.frame{fill:none;stroke:#8c959f}.grid{stroke:#d8dee4}
text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:14px;font-weight:600}.soft{fill:#59636e}
.rule{stroke:#59636e;stroke-dasharray:5 4}
.s0,.s1{fill:none;stroke-width:1.6}.s0{stroke:#0b5cad}.s1{stroke:#c2570c}
.b0,.b1{fill:none;stroke-width:1.3}.b0{stroke:#0b5cad}.b1{stroke:#c2570c;stroke-opacity:.75}
@media(prefers-color-scheme:dark){
.back{fill:#0d1117}.frame{stroke:#656c76}.grid{stroke:#262c36}text{fill:#f0f6fc}.soft{fill:#9198a1}.rule{stroke:#9198a1}
.s0,.b0{stroke:#58a6ff}.s1,.b1{stroke:#f0883e}}`.trim();

/**
 * @param {Plot} plot
 * @returns {string}
 */
export function drawPlot(plot) {
  const parts = [];
  let y = top;
  for (const panel of plot.panels) {
    parts.push(drawPanel(plot, panel, y));
    y += panel.height + betweenPanels;
  }
  const lowest = y - betweenPanels;
  for (let tick = 0; tick <= plot.xTo; tick += plot.xStep) {
    parts.push(text(xOf(plot, tick), lowest + 16, String(tick), 'soft', 'middle'));
  }
  parts.push(text(left + plotWidth / 2, lowest + 34, plot.xLabel, 'soft', 'middle'));
  const height = lowest + bottom;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${asText(plot.title)}</title><desc>${asText(plot.description)}</desc><style>${style}</style>`,
    `<rect class="back" width="${width}" height="${height}"/>`,
    text(left, 22, plot.title, 'title'),
    drawLegend(plot.legend),
    ...parts,
    '</svg>\n',
  ].join('\n');
}

/** @param {string[]} legend */
function drawLegend(legend) {
  const parts = [];
  let x = left;
  for (const [look, name] of legend.entries()) {
    parts.push(
      `<path class="s${look}" style="stroke-width:3" d="M${fix(x)} 40h20"/>`,
      text(x + 26, 44, name),
    );
    // Letters are about so wide; there is nobody to measure them.
    x += name.length * 6.6 + 50;
  }
  return parts.join('\n');
}

/**
 * @param {Plot} plot
 * @param {Panel} panel
 * @param {number} y of its upper edge
 */
function drawPanel(plot, panel, y) {
  const { scale, height } = panel;
  const yOf = (/** @type {number} */ value) => y + height * (1 - part(scale, value));
  const parts = [text(left, y - 8, panel.title)];
  for (const { at, label } of scale.ticks) {
    parts.push(`<path class="grid" d="M${left} ${fix(yOf(at))}h${plotWidth}"/>`);
    parts.push(text(left - 8, yOf(at) + 4, label, 'soft', 'end'));
  }
  for (let tick = plot.xStep; tick < plot.xTo; tick += plot.xStep) {
    parts.push(`<path class="grid" d="M${fix(xOf(plot, tick))} ${y}v${height}"/>`);
  }
  // The first look comes last, above the second.
  for (const series of panel.series.toReversed()) parts.push(drawSeries(plot, series, yOf, y + height));
  for (const { at, label } of panel.rules ?? []) {
    parts.push(`<path class="rule" d="M${left} ${fix(yOf(at))}h${plotWidth}"/>`);
    parts.push(text(left + plotWidth + 6, yOf(at) + 4, label, 'soft'));
  }
  for (const { look, x } of panel.crosses ?? []) {
    parts.push(`<path class="s${look}" d="M${fix(xOf(plot, x) - 3)} ${y + 3}l6 6m0-6l-6 6"/>`);
  }
  parts.push(`<rect class="frame" x="${left}" y="${y}" width="${plotWidth}" height="${height}"/>`);
  return parts.join('\n');
}

/**
 * @param {Plot} plot
 * @param {Series} series
 * @param {(value: number) => number} yOf
 * @param {number} floor
 */
function drawSeries(plot, { look, kind, points }, yOf, floor) {
  let path = '';
  let last = Number.NaN;
  for (const point of points) {
    if (point.x > plot.xTo) break;
    const x = fix(xOf(plot, point.x));
    const y = yOf(point.y);
    if (kind === 'bars') {
      if (y < floor) path += `M${x} ${fix(floor)}V${fix(y)}`;
    } else if (point.y !== last) {
      path += path === '' ? `M${x} ${fix(y)}` : `H${x}V${fix(y)}`;
      last = point.y;
    }
  }
  if (kind === 'steps') path += `H${fix(xOf(plot, Math.min(plot.xTo, points.at(-1)?.x ?? 0)))}`;
  return `<path class="${kind === 'bars' ? 'b' : 's'}${look}" d="${path}"/>`;
}

/**
 * How far up the scale a value is, from 0 to 1.
 * @param {Scale} scale
 * @param {number} value
 */
function part({ kind, from, to }, value) {
  const within = Math.min(to, Math.max(from, value));
  if (kind === 'linear') return (within - from) / (to - from);
  return Math.log(within / from) / Math.log(to / from);
}

/**
 * @param {Plot} plot
 * @param {number} x
 */
function xOf(plot, x) {
  return left + (plotWidth * x) / plot.xTo;
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} words
 * @param {string} [name] of the class
 * @param {'start' | 'middle' | 'end'} [anchor]
 */
function text(x, y, words, name = '', anchor = 'start') {
  const looks = `${name === '' ? '' : ` class="${name}"`}${anchor === 'start' ? '' : ` text-anchor="${anchor}"`}`;
  return `<text x="${fix(x)}" y="${fix(y)}"${looks}>${asText(words)}</text>`;
}

/** @param {number} value */
function fix(value) {
  return String(Math.round(value * 10) / 10);
}

/** @param {string} words */
function asText(words) {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
