// @ts-check
// Many clients that log in and then do nothing. Started with the pooler's port, the user, the database and how many they
// are; says when all are in, or that they could not get in, and ends with its parent.
import { connect } from 'node:net';

const [port = '', user = '', database = '', count = ''] = process.argv.slice(2);
const wanted = Number(count);
/** So many log in at a time. */
const atOnce = 50;

const startupPacket = startup({ user, database });
const readyForQuery = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
/** Kept, so that they stay open. */
/** @type {import('node:net').Socket[]} */
const clients = [];
let begun = 0;

for (let i = 0; i < atOnce; i++) next();
process.on('disconnect', () => process.exit());

function next() {
  if (begun === wanted) return;
  begun += 1;
  const socket = connect({ port: Number(port), host: '127.0.0.1' });
  socket.once('connect', () => socket.write(startupPacket));
  socket.once('error', (error) => fail(error.message));
  let came = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    came = Buffer.concat([came, chunk]);
    if (came[0] === 0x45) fail(came.toString('latin1'));
    if (!came.subarray(-readyForQuery.length).equals(readyForQuery)) return;
    socket.removeAllListeners('data');
    clients.push(socket);
    if (clients.length === wanted) process.send?.({ areIn: true });
    next();
  });
}

/** @param {string} why */
function fail(why) {
  process.send?.({ failed: `Client ${clients.length + 1} of ${wanted} could not log in: ${why}` });
}

/** @param {Record<string, string>} parameters */
function startup(parameters) {
  const body = Buffer.from(`\0\u0003\0\0${Object.entries(parameters).flat().join('\0')}\0\0`, 'latin1');
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}
