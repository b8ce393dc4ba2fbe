// @ts-check
// Shows the demonstration: a panel that is redrawn in a terminal, or a line a second where there is none.

/**
 * @typedef {object} DemoView
 * @property {string} title
 * @property {string[]} places how to connect to what runs meanwhile
 * @property {string} server what `sessions` were counted on
 * @property {number} cycle
 * @property {number} elapsedMs
 * @property {{ name: string, text: string }} phase
 * @property {Record<'limit' | 'in use' | 'idle' | 'opening' | 'closing' | 'waiting', number>} counts
 * @property {number} max the highest limit the pool ever had
 * @property {number} sessions what the server sees now
 * @property {number} highestSessions what the server saw at most
 * @property {string[]} counters
 * @property {string} [pooler] what the pooler does meanwhile
 * @property {string[]} [beside] another pool under the same load and faults
 * @property {string[]} events the newest last
 */

/**
 * @typedef {object} DemoScreen
 * @property {(view: DemoView) => void} show called several times a second
 * @property {() => void} close gives the terminal back
 */

const barWidth = 40;
const redrawMs = 200;
const lineMs = 1_000;

/**
 * @param {NodeJS.WriteStream} out
 * @returns {DemoScreen & { everyMs: number }}
 */
export function openScreen(out) {
  return out.isTTY && process.env.TERM !== 'dumb' ? openPanel(out) : openLines(out);
}

/**
 * @param {NodeJS.WriteStream} out
 * @returns {DemoScreen & { everyMs: number }}
 */
function openPanel(out) {
  const plain = (process.env.NO_COLOR ?? '') !== '';
  /** @type {(code: number, text: string) => string} */
  const paint = (code, text) => (plain ? text : `\x1b[${code}m${text}\x1b[0m`);
  // The other screen, without a cursor: what the user had in the terminal comes back afterwards.
  out.write('\x1b[?1049h\x1b[?25l');
  return {
    everyMs: redrawMs,
    show(view) {
      const width = out.columns;
      const places = view.places.map((place) => `  ${place}`);
      // An address that does not fit goes on in the next row: cut, it would lead nowhere.
      const rowsOfPlaces = places.reduce(
        (sum, { length }) => sum + Math.max(1, Math.ceil(length / width)),
        0,
      );
      const lines = drawPanel(view, paint);
      const room = Math.max(8, out.rows - 1 - lines.length - rowsOfPlaces);
      lines.push(...view.events.slice(-room).map((event) => `  ${event}`));
      const left = Math.max(1, out.rows - 1 - rowsOfPlaces);
      const cut = [
        ...places.map((place) => `${place}\x1b[K`),
        ...lines.slice(0, left).map((line) => `${cutTo(line, width)}\x1b[K`),
      ];
      out.write(`\x1b[H${cut.join('\r\n')}\x1b[J`);
    },
    close() {
      out.write('\x1b[?25h\x1b[?1049l');
    },
  };
}

/**
 * @param {DemoView} view
 * @param {(code: number, text: string) => string} paint
 */
function drawPanel(view, paint) {
  const { counts } = view;
  /** @type {(name: keyof DemoView['counts'], colour: number) => string} */
  const bar = (name, colour) => {
    const length = Math.min(counts[name] * (name === 'waiting' ? 1 : 3), barWidth);
    const more = counts[name] > barWidth ? '…' : '';
    return `  ${name.padEnd(8)}${String(counts[name]).padStart(5)}  ${paint(colour, '█'.repeat(length))}${more}`;
  };
  const verdict =
    view.highestSessions <= view.max ? paint(32, `never over ${view.max}`) : paint(31, `OVER ${view.max}`);
  return [
    `${paint(1, 'Headgate')}  ${view.title}  ${paint(2, '(Ctrl-C ends)')}`,
    '',
    `  ${paint(1, view.phase.name.padEnd(8))} ${view.phase.text}`,
    `  ${paint(2, `cycle ${view.cycle}, ${seconds(view.elapsedMs)}`)}`,
    '',
    bar('limit', 37),
    bar('in use', 32),
    bar('idle', 36),
    bar('opening', 33),
    bar('closing', 35),
    bar('waiting', 34),
    '',
    `  ${view.server} sees ${view.sessions} sessions, ${view.highestSessions} at most: ${verdict}`,
    ...view.counters.map((line) => `  ${line}`),
    '',
    ...(view.pooler === undefined ? [] : [`  ${view.pooler}`, '']),
    ...(view.beside === undefined ? [] : [...view.beside.map((line) => `  ${line}`), '']),
    paint(2, '  last events'),
  ];
}

/**
 * @param {NodeJS.WriteStream} out
 * @returns {DemoScreen & { everyMs: number }}
 */
function openLines(out) {
  let phase = '';
  let toldEvent = '';
  /** @type {string | undefined} */
  let openEvent;
  /** @param {string[]} lines */
  const tell = (lines) => {
    for (const line of lines) out.write(`          ${line}\n`);
  };
  return {
    everyMs: lineMs,
    show(view) {
      // The last event may still be summed up with the next.
      const over = view.events.slice(view.events.lastIndexOf(toldEvent) + 1, -1);
      toldEvent = over.at(-1) ?? toldEvent;
      openEvent = view.events.at(-1);
      tell(over.map((event) => `event ${event.trim()}`));
      if (view.phase.name !== phase) {
        const pooler = view.pooler === undefined ? [] : [view.pooler];
        if (phase !== '') tell([...view.counters, ...pooler, ...(view.beside ?? [])]);
        phase = view.phase.name;
        out.write(`-- ${phase}: ${view.phase.text}\n`);
      }
      const counts = Object.entries(view.counts).map(([name, count]) => `${name} ${count}`);
      const server = `server sees ${view.sessions}, ${view.highestSessions} at most`;
      out.write(`${seconds(view.elapsedMs).padStart(8)}  ${[...counts, server].join('  ')}\n`);
    },
    close() {
      if (openEvent !== undefined) tell([`event ${openEvent.trim()}`]);
    },
  };
}

/** @param {number} ms */
export function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

/**
 * Cuts a line to the width of the terminal, not counting what only colours it.
 * @param {string} line
 * @param {number} width
 */
function cutTo(line, width) {
  let left = width;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what begins a colour.
  return line.replace(/\x1b\[\d+m|./gu, (part) => (part.length > 2 || left-- > 0 ? part : ''));
}
