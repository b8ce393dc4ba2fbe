/** Kinds of values for the options of fair shares: a capacity, and weights of users. */
import { readFileSync, statSync } from 'node:fs';
import { Misread, show } from './config-problems.js';
import { iniInteger, isMapping, itemsOf, type Kind, type ReadContext, textOf } from './kind.js';
import { path } from './special-kinds.js';

/** `auto`: the server's own limit. `none`: no limit. */
export type Capacity = number | 'auto' | 'none';

const mostConnections = 10_000_000;

export const capacity: Kind<Capacity> = {
  name: 'integer, `auto` or `none`',
  placeholder: 'N',
  fromData(value) {
    if (value === 'auto' || value === 'none') return value;
    if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= mostConnections)
      return value as number;
    throw new Misread(
      `must be a whole number from 1 to ${mostConnections}, auto or none, not ${show(value)}`,
    );
  },
  fromText: (value, context) =>
    capacity.fromData(/^\d{1,15}$/.test(value) ? Number(value) : value.toLowerCase(), context),
  iniToData: iniInteger,
  show: String,
  toIni: String,
};

/** Twice the weight gives twice the share. */
export const weight: Kind<number> = {
  name: 'number',
  placeholder: 'NUMBER',
  fromData(value) {
    if (typeof value === 'number' && value >= 0.001 && value <= 1_000_000) return value;
    throw new Misread(`must be a number from 0.001 to 1000000, not ${show(value)}`);
  },
  fromText: (value, context) =>
    weight.fromData(/^\d{1,9}(?:\.\d{1,9})?$/.test(value) ? Number(value) : value, context),
  iniToData: Number,
  show: String,
  toIni: String,
};

/** In a file, a mapping of users to weights; elsewhere `user=weight` separated by commas. */
export const weights: Kind<ReadonlyMap<string, number>> = {
  name: 'weights of users',
  placeholder: 'USER=N,..',
  fromData(value, context) {
    if (typeof value === 'string') return weights.fromText(value, context);
    if (!isMapping(value))
      throw new Misread(
        `must be a mapping of users to their weights, such as { app: 2 }, not ${show(value)}`,
      );
    return new Map(Object.entries(value).map(([user, given]) => [user, weightOf(user, given)]));
  },
  fromText(value) {
    if (value === 'none') return new Map();
    return new Map(
      itemsOf(textOf(value)).map((item) => {
        const at = item.lastIndexOf('=');
        const [user, given] = [item.slice(0, at).trimEnd(), item.slice(at + 1).trimStart()];
        if (at < 1 || !/^\d{1,9}(?:\.\d{1,9})?$/.test(given))
          throw new Misread(`must be user=weight between commas, not ${show(value)}`);
        return [user, weightOf(user, Number(given))] as const;
      }),
    );
  },
  iniToData: (value) => value,
  show: (value) => Array.from(value, ([user, given]) => `${user}=${given}`).join(', ') || 'none',
  toIni: (value) => Array.from(value, ([user, given]) => `${user}=${given}`).join(', '),
};

function weightOf(user: string, given: unknown): number {
  if (typeof given === 'number' && given >= 0.001 && given <= 1_000_000) return given;
  throw new Misread(
    `gives ${show(user)} the weight ${show(given)}: it must be a number from 0.001 to 1000000`,
  );
}

/** Weights in a file of their own, which is read again at each reload. */
export interface WeightsFile {
  readonly file: string;
  readonly weights: ReadonlyMap<string, number>;
}

const longestFile = 16_777_216;

export const weightsFile: Kind<WeightsFile | undefined> = {
  name: 'JSON file',
  placeholder: 'FILE',
  fromData: (value, context) => readWeights(path.fromData(value, context), context),
  fromText: (value, context) => readWeights(path.fromText(value, context), context),
  iniToData: (value) => value,
  show: (value) => value?.file ?? 'none',
  toIni: (value) => value?.file ?? '',
};

function readWeights(file: string | undefined, context: ReadContext): WeightsFile | undefined {
  if (file === undefined || !context.readsFiles)
    return file === undefined ? undefined : { file, weights: new Map() };
  let data: unknown;
  try {
    if (statSync(file).size > longestFile) throw new Error(`it is longer than ${longestFile} bytes`);
    data = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Misread(`can't be read from ${file}: ${(error as Error).message}`);
  }
  if (!isMapping(data)) throw new Misread(`must be a JSON file of users and their weights: ${file} is not`);
  return { file, weights: weights.fromData(data, context) };
}
