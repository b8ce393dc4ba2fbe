// @ts-check
// Messages of clients, built by hand: attackers send what no driver would.

/**
 * @param {string} type
 * @param {string | Buffer} body
 */
export function message(type, body) {
  const bytes = typeof body === 'string' ? Buffer.from(body, 'latin1') : body;
  const head = Buffer.alloc(5);
  head.write(type, 'latin1');
  head.writeInt32BE(bytes.length + 4, 1);
  return Buffer.concat([head, bytes]);
}

/** @param {Readonly<Record<string, string>>} parameters */
export function startup(parameters) {
  const body = Buffer.from(`${Object.entries(parameters).flat().join('\0')}\0\0`, 'latin1');
  const head = Buffer.alloc(8);
  head.writeInt32BE(body.length + 8);
  head.writeInt32BE(196_608, 4);
  return Buffer.concat([head, body]);
}

/**
 * @param {number} processId
 * @param {number} key
 */
export function cancelRequest(processId, key) {
  const bytes = Buffer.alloc(16);
  for (const [at, value] of [16, 80_877_102, processId, key].entries()) bytes.writeInt32BE(value, 4 * at);
  return bytes;
}

/** @param {string} text */
export const query = (text) => message('Q', `${text}\0`);
export const sync = message('S', '');

/**
 * @param {string} name
 * @param {string} text
 */
export const parse = (name, text) => message('P', `${name}\0${text}\0\0\0`);

/** @param {string} name */
export const close = (name) => message('C', `S${name}\0`);
