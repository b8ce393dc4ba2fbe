/** The addresses of both ends of a socket, read while it is open: a closed socket no longer has them. */
import type { Socket } from 'node:net';
import type { HandleAddress, NativeHandle } from './native-streams.js';

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

/** `local`: the address that is listened on, where it is one that says at which of them a client has come in. */
export function tcpEndsOf(
  handle: NativeHandle,
  local?: Pick<SocketEnds, 'localAddress' | 'localPort'>,
): SocketEnds {
  const remote: HandleAddress = {};
  handle.getpeername?.(remote);
  const here: HandleAddress = {};
  if (local === undefined) handle.getsockname?.(here);
  return {
    isUnix: false,
    remoteAddress: plainAddress(remote.address),
    remotePort: remote.port ?? 0,
    localAddress: local?.localAddress ?? plainAddress(here.address),
    localPort: local?.localPort ?? here.port ?? 0,
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
