/** Encodes a configuration for another process: secrets are wrapped so that only the receiver can unwrap them. */
import { HiddenText } from '../config/hidden-text.js';
import { frozenMap, type PoolerConfig } from '../config/pooler-config.js';

/** For the channel between processes only; never written to a file. */
export type EncodedConfig = Readonly<Record<string, unknown>>;

/** No setting can have this name. */
const secretKey = ' secret';

export function encodeConfig(config: PoolerConfig): EncodedConfig {
  return encode(config) as EncodedConfig;
}

export function decodeConfig(encoded: EncodedConfig): PoolerConfig {
  return decode(encoded) as PoolerConfig;
}

function encode(value: unknown): unknown {
  if (value instanceof HiddenText) return { [secretKey]: value.reveal() };
  if (value instanceof Map) return new Map(Array.from(value, ([key, inside]) => [key, encode(inside)]));
  if (Array.isArray(value)) return value.map(encode);
  return isObject(value) ? mapped(value, encode) : value;
}

function decode(value: unknown): unknown {
  if (value instanceof Map)
    return frozenMap(Array.from(value, ([key, inside]) => [key as string, decode(inside)] as const));
  if (Array.isArray(value)) return Object.freeze(value.map(decode));
  if (!isObject(value)) return value;
  const secret = value[secretKey];
  return typeof secret === 'string' ? new HiddenText(secret) : Object.freeze(mapped(value, decode));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function mapped(
  value: Readonly<Record<string, unknown>>,
  change: (value: unknown) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([key, inside]) => [key, change(inside)]));
}
