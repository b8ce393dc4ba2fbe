/** TCP sockets of this machine, as Linux lists them. A container, or another machine, has a list of its own. */
import { readFile } from 'node:fs/promises';
import { isIPv4, isIPv6 } from 'node:net';
import { endianness } from 'node:os';
import type { DialEnds } from '../messages/messages.js';

const tables = ['/proc/net/tcp', '/proc/net/tcp6'] as const;
/** A socket in this state belongs to no process any more. */
const timeWait = '06';
const row = /^\s*\d+: ([0-9A-F]+:[0-9A-F]{4}) ([0-9A-F]+:[0-9A-F]{4}) ([0-9A-F]{2}) /gm;

export interface SocketTable {
  /** The server's end of this connection exists: a process has it, or is about to accept it. */
  hasServerEnd(ends: DialEnds): boolean;
}

/** Undefined where there is no such list. */
export async function readSocketTable(): Promise<SocketTable | undefined> {
  try {
    const [four, six] = await Promise.all([
      readFile(tables[0], 'latin1'),
      // Some machines have no IPv6.
      readFile(tables[1], 'latin1').catch(() => ''),
    ]);
    return socketTableOf(`${four}\n${six}`);
  } catch {
    return undefined;
  }
}

/** Parses the text of these files. */
export function socketTableOf(text: string): SocketTable {
  const pairs = new Set<string>();
  for (const [, local, remote, state] of text.matchAll(row))
    if (state !== timeWait) pairs.add(`${local} ${remote}`);
  return {
    hasServerEnd({ localAddress, localPort, remoteAddress, remotePort }) {
      const theirs = forms(remoteAddress, remotePort);
      const ours = forms(localAddress, localPort);
      return theirs.some((local, form) => pairs.has(`${local} ${ours[form]}`));
    },
  };
}

/** Notations of an address in the files; an IPv4 address can be in both of them. */
function forms(address: string, port: number): string[] {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const bytes = bytesOf(address);
  if (bytes === undefined) return [];
  if (bytes.length === 16) return [hex(bytes) + end];
  return [hex(bytes) + end, hex([...new Array<number>(10).fill(0), 255, 255, ...bytes]) + end];
}

/** Words of four bytes, each in the byte order of this machine. */
function hex(bytes: readonly number[]): string {
  const ordered: number[] = [];
  for (let at = 0; at < bytes.length; at += 4) {
    const word = bytes.slice(at, at + 4);
    ordered.push(...(endianness() === 'LE' ? word.reverse() : word));
  }
  return Buffer.from(ordered).toString('hex').toUpperCase();
}

function bytesOf(text: string): number[] | undefined {
  const [address = ''] = text.split('%');
  if (isIPv4(address)) return address.split('.').map(Number);
  if (!isIPv6(address)) return undefined;
  const [head = [], tail] = address.split('::').map(groupBytes);
  if (tail === undefined) return head;
  return [...head, ...new Array<number>(16 - head.length - tail.length).fill(0), ...tail];
}

function groupBytes(groups: string): number[] {
  if (groups === '') return [];
  return groups.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 255];
  });
}
