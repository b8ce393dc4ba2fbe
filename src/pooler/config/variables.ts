/** Environment variables of `headgate serve`: every option has one, and unknown names are reported. */
import type { Environment } from '../../kernel/environment.js';
import { nearest } from '../../kernel/nearest.js';
import { variableOf } from './option.js';
import { allOptions } from './option-table.js';

export const configVariable = 'HEADGATE_CONFIG';
export const iniVariable = 'HEADGATE_PGBOUNCER_INI';

const prefix = 'HEADGATE_';

const known: readonly string[] = [
  configVariable,
  iniVariable,
  'HEADGATE_DATABASES',
  'HEADGATE_USERS',
  ...allOptions.map(({ option }) => variableOf(option)),
];

/**
 * Unknown names, each with a similar known one. They do not stop the pooler, since an environment is shared with other
 * programs. Their values are not repeated, since they may be secrets.
 */
export function unknownVariables(environment: Environment): string[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith(prefix) && !known.includes(name))
    .map((name) => {
      const guess = nearest(
        name.slice(prefix.length),
        known.map((other) => other.slice(prefix.length)),
      );
      const meant = guess === undefined ? '' : `; did you mean ${prefix}${guess}?`;
      return `${name} is not known and not used${meant}`;
    });
}
