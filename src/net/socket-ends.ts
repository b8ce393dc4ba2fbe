/** The addresses of both ends of a socket, read while it is open: a closed socket no longer has them. */
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

/** As in PgBouncer: both ends are the socket, and the port is the one in its name. */
export function unixEnds(port: number): SocketEnds {
  return { isUnix: true, remoteAddress: 'unix', remotePort: port, localAddress: 'unix', localPort: port };
}

/** A socket that listens for both families shows an IPv4 address as IPv6; rules and logs want the address itself. */
function plainAddress(address: string | undefined): string {
  if (address === undefined) return '';
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
