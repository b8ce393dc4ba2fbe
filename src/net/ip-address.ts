/** Internet addresses as bytes: 4, or 16. */
import { isIPv4, isIPv6 } from 'node:net';

const mappedPrefix = Buffer.from('00000000000000000000ffff', 'hex');

/** 4 or 16 bytes; `undefined` if the text is no address. An IPv4 address inside of an IPv6 one is the IPv4 address. */
export function parseIpAddress(text: string): Buffer | undefined {
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number));
  // The part behind the % is an interface of this machine.
  const [address = ''] = text.split('%');
  if (!isIPv6(address)) return undefined;
  const bytes = parseIpv6(address);
  return bytes.subarray(0, 12).equals(mappedPrefix) ? bytes.subarray(12) : bytes;
}

function parseIpv6(text: string): Buffer {
  const [head = '', tail] = text.split('::');
  const first = groupBytes(head);
  if (tail === undefined) return Buffer.from(first);
  const last = groupBytes(tail);
  return Buffer.from([...first, ...new Array(16 - first.length - last.length).fill(0), ...last]);
}

function groupBytes(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number);
    const value = Number.parseInt(group, 16);
    return [value >>> 8, value & 0xff];
  });
}
