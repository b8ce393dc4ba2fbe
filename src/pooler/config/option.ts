/** One option of the pooler, with all that is to be known about it. Everything else is derived from this. */
import type { Kind } from './kind.js';

/**
 * Effect of a reload on a setting. What a reload does, its log, the console and the documentation all go by this alone.
 *
 * - `now`: the new value holds at once, also for what is open.
 * - `new-clients`: for clients that connect from then on.
 * - `new-servers`: for server connections opened from then on; open ones close when they are given back.
 * - `other-servers`: the same, and open ones lead elsewhere, or in another way: a client of session mode that keeps one may be told to go.
 * - `restart`: none, until the pooler is started again.
 */
export type ReloadEffect = 'now' | 'new-clients' | 'new-servers' | 'other-servers' | 'restart';

/** When a changed setting holds: in a heading of RELOAD's log, and in a column of the documentation. */
export const reloadTexts: Readonly<
  Record<ReloadEffect, { readonly heading: string; readonly column: string }>
> = {
  now: { heading: 'at once', column: 'at once' },
  'new-clients': { heading: 'for clients that connect from now on', column: 'new clients' },
  'new-servers': {
    heading: 'for server connections opened from now on; open ones close when they are given back',
    column: 'new server connections',
  },
  'other-servers': {
    heading: 'for all server connections: open ones close when they are given back, and are replaced',
    column: 'all server connections',
  },
  restart: { heading: 'not before a restart', column: 'restart' },
};

/** For what is bound to a socket that listens. */
export const boundAtStart = { reload: 'restart', whyRestart: 'sockets are opened at the start' } as const;

/** Of what holds for all until this option is said, that which matters to others. */
export interface SaidForAll {
  readonly pooling?: { readonly serverLifetime?: unknown; readonly serverMaxUses?: unknown };
}

/** PgBouncer's option for the same, and how it differs. */
export interface PgBouncerSide {
  /** Its name there, if it is another one. */
  readonly name?: string;
  /** Its default as pgbouncer.ini would have it, where it is another one, and why. */
  readonly otherDefault?: { readonly ini: string; readonly why: string };
  /** What is not the same although the value is carried over. */
  readonly difference?: string;
  /** For which of its values that is so; without this for all. */
  readonly differsFor?: (ini: string) => boolean;
  /** Where its values are written in another way than the kind's are. Undefined: as if it were not given. */
  readonly toData?: (ini: string) => unknown;
  /** By what the section has come to say, where the option would mean more here than there: it is left out then. */
  readonly isUnused?: (section: Readonly<Record<string, unknown>>) => boolean;
  /** An entry that says 0 has what holds for all: there, 0 of a database or a user is as if it were not given. */
  readonly zeroIsUnset?: boolean;
  /** What has to be said beside it, by the keys of the same section or entry; undefined: not any more. */
  readonly also?: (ini: string, said: SaidForAll) => Readonly<Record<string, unknown>>;
}

export interface OptionDetails {
  /** With underscores; PgBouncer's name where it has the option. The flag and the variable are made of it. */
  readonly name: string;
  readonly meaning: string;
  readonly reload: ReloadEffect;
  /** Given where a restart is needed. */
  readonly whyRestart?: string;
  /** Undefined where PgBouncer has no such option. */
  readonly pgbouncer?: PgBouncerSide;
  /** The default in words, where the value does not say it. */
  readonly defaultText?: string;
}

export interface Option<T> extends OptionDetails {
  readonly kind: Kind<T>;
  readonly default: T;
}

export function option<T>(kind: Kind<T>, usual: T, details: OptionDetails): Option<T> {
  return Object.freeze({ ...details, kind, default: usual });
}

/** An option of one database or one user: undefined where it is not given, and what holds for all holds here. */
export function override<T>(kind: Kind<T>, details: OptionDetails): Option<T | undefined> {
  return option<T | undefined>(orNothing(kind), undefined, details);
}

/** It is read as the kind is; "nothing" is only what is not given. */
function orNothing<T>(kind: Kind<T>): Kind<T | undefined> {
  return {
    ...kind,
    show: (value) => (value === undefined ? 'none' : kind.show(value)),
    toIni: (value) => (value === undefined ? '' : kind.toIni(value)),
  };
}

/** Where options are gone through one by one, the types of their values are not known. */
export type AnyOption = Option<unknown>;

/** Options by the key that they have in a configuration file. */
export type OptionGroup = Readonly<Record<string, AnyOption>>;

export type ValueOf<O> = O extends { readonly default: infer T } ? T : never;

export type ValuesOf<Group> = { readonly [Key in keyof Group]: ValueOf<Group[Key]> };

export function flagOf({ name }: { readonly name: string }): string {
  return `--${name.replaceAll('_', '-')}`;
}

export function variableOf({ name }: { readonly name: string }): string {
  return `HEADGATE_${name.toUpperCase()}`;
}

/** With what 0 stands for, where the default does not show it. */
export function meaningOf({ kind, meaning, default: usual }: AnyOption): string {
  return kind.zero === undefined || usual === 0 ? meaning : `${meaning}; 0: ${kind.zero}`;
}

export function defaultOf(known: AnyOption): string {
  return known.defaultText ?? known.kind.show(known.default);
}
