/** Between whom a socket is, read while it is open: a closed socket knows no longer. */
import type { Socket } from 'node:net';

export interface SocketEnds {
  readonly isUnix: boolean;
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
}

export function tcpEnds(socket: Socket): SocketEnds {
  return {
    isUnix: false,
    remoteAddress: plainAddress(socket.remoteAddress),
    remotePort: socket.remotePort ?? 0,
    localAddress: plainAddress(socket.localAddress),
    localPort: socket.localPort ?? 0,
  };
}

/** As PgBouncer has it: both ends are the socket, and the port is the one in its name. */
export function unixEnds(port: number): SocketEnds {
  return { isUnix: true, remoteAddress: 'unix', remotePort: port, localAddress: 'unix', localPort: port };
}

/** A socket that listens for both families shows an IPv4 address as IPv6; rules and logs want the address itself. */
function plainAddress(address: string | undefined): string {
  if (address === undefined) return '';
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
