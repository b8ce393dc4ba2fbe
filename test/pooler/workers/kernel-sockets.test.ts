// The kernel's list of TCP sockets: the server's end of a connection is found, and nothing else is taken for it.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { endianness, networkInterfaces } from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { tcpEnds } from '../../../src/net/socket-ends.js';
import { readSocketTable, socketTableOf } from '../../../src/pooler/supervisor/kernel-sockets.js';

const isLinux = process.platform === 'linux';
const hasIPv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
);
const hosts = hasIPv6 ? ['127.0.0.1', '::1', '::ffff:127.0.0.1'] : ['127.0.0.1'];

test.runIf(isLinux).each(hosts)(
  "the server's end of a connection to %s is listed while a process has it",
  async (host) => {
    const server = createServer({ allowHalfOpen: true }).listen(0, host.includes('ffff') ? '::' : host);
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const socket = connect({ host, port: (server.address() as AddressInfo).port });
    const [[accepted]] = (await Promise.all([once(server, 'connection'), once(socket, 'connect')])) as [
      [ReturnType<typeof connect>],
      unknown,
    ];
    const { isUnix: _, ...ends } = tcpEnds(socket);
    expect((await readSocketTable())?.hasServerEnd(ends)).toBe(true);
    // The client is gone, and the server has not noticed.
    socket.destroy();
    await once(socket, 'close');
    expect((await readSocketTable())?.hasServerEnd(ends)).toBe(true);
    accepted.destroy();
    await once(accepted, 'close');
    await expect.poll(async () => (await readSocketTable())?.hasServerEnd(ends)).toBe(false);
  },
);

const header = '  sl  local_address rem_address   st tx_queue rx_queue\n';
const ends = { localAddress: '127.0.0.1', localPort: 47_436, remoteAddress: '127.0.0.1', remotePort: 41_793 };

test.runIf(endianness() === 'LE').each([
  ['established', '   6: 0100007F:A341 0100007F:B94C 01 00000000:00000000', true],
  ['closed by the client', '   6: 0100007F:A341 0100007F:B94C 08 00000000:00000001', true],
  ['not accepted yet', ' 116: 0100007F:A341 0100007F:B94C 03 00000000:00000000', true],
  [
    'in the list of IPv6',
    '   0: 0000000000000000FFFF00000100007F:A341 0000000000000000FFFF00000100007F:B94C 01 0',
    true,
  ],
  ['closed, and in TIME_WAIT', '   6: 0100007F:A341 0100007F:B94C 06 00000000:00000000', false],
  ['only at the end of the client', '   5: 0100007F:B94C 0100007F:A341 01 00000000:00000000', false],
  ['of another port', '   6: 0100007F:A341 0100007F:B94D 01 00000000:00000000', false],
  ['of another address', '   6: 0200007F:A341 0100007F:B94C 01 00000000:00000000', false],
])('a socket that is %s has a server end or not', (_, line, expected) => {
  expect(socketTableOf(`${header}${line} \n`).hasServerEnd(ends)).toBe(expected);
});

test('an address that is none is never found', () => {
  const unix = { localAddress: 'unix', localPort: 5_432, remoteAddress: 'unix', remotePort: 5_432 };
  expect(socketTableOf(header).hasServerEnd(unix)).toBe(false);
});
