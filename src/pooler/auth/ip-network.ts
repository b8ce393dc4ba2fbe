/** IP addresses as bytes, and networks. */
import { isIPv4 } from 'node:net';
import { parseIpAddress } from '../../net/ip-address.js';

export interface IpNetwork {
  /** 4 or 16 bytes. */
  readonly address: Buffer;
  /** Number of leading bits that count. */
  readonly bits: number;
}

/** `10.0.0.0/8`, `::1/128`; `undefined` for anything else. */
export function parseNetwork(text: string): IpNetwork | undefined {
  const [, addressText = '', bitsText = ''] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  const address = parseIpAddress(addressText);
  if (address === undefined) return undefined;
  // In IPv6 notation, the first 96 bits only mark an IPv4 address.
  const bits = Number(bitsText) - (address.length === 4 && !isIPv4(addressText) ? 96 : 0);
  return bits >= 0 && bits <= 8 * address.length ? { address, bits } : undefined;
}

/** An address and a mask of the same kind, such as 255.255.0.0. */
export function networkOfMask(address: Buffer, mask: Buffer): IpNetwork | undefined {
  if (mask.length !== address.length) return undefined;
  const binary = Array.from(mask, (byte) => byte.toString(2).padStart(8, '0')).join('');
  const bits = binary.indexOf('0') === -1 ? binary.length : binary.indexOf('0');
  return binary.includes('1', bits) ? undefined : { address, bits };
}

export function isInNetwork(address: Buffer, network: IpNetwork): boolean {
  if (address.length !== network.address.length) return false;
  const whole = network.bits >>> 3;
  if (address.compare(network.address, 0, whole, 0, whole) !== 0) return false;
  const rest = network.bits & 7;
  if (rest === 0) return true;
  const difference = (address[whole] as number) ^ (network.address[whole] as number);
  return difference >>> (8 - rest) === 0;
}
