/** Lists of databases and users in a rule: names, and words that stand for many. */
import type { Field, Token } from './file-tokens.js';

/** Database and user of a connection. */
export interface WantedNames {
  readonly user: string;
  readonly database: string;
  /** Other names of the same database. A rule for one of them applies to all. */
  readonly otherNames?: readonly string[] | undefined;
  /** Physical replication, which belongs to no database. */
  readonly isReplication: boolean;
}

export class NameList {
  readonly names = new Set<string>();
  /** `all`, `sameuser`, `replication`. */
  readonly words = new Set<string>();

  matchesDatabase({ database, otherNames = [], user, isReplication }: WantedNames): boolean {
    // As in PostgreSQL, `all` stands for all databases, and replication is not one.
    if (isReplication) return this.words.has('replication');
    if (this.words.has('all')) return true;
    const isSameUser = this.words.has('sameuser');
    return [database, ...otherNames].some((name) => this.names.has(name) || (isSameUser && name === user));
  }

  matchesUser({ user }: WantedNames): boolean {
    return this.words.has('all') || this.names.has(user);
  }
}

const databaseWords = ['all', 'sameuser', 'replication'];
const unsupportedDatabaseWords = ['samerole', 'samegroup'];

/** `problem` receives the problems. */
export function readDatabases(field: Field, problem: (message: string) => void): NameList {
  return readNames(
    field,
    databaseWords,
    (text) => {
      if (unsupportedDatabaseWords.includes(text)) return `${text} is not supported: name the databases`;
      return undefined;
    },
    problem,
  );
}

export function readUsers(field: Field, problem: (message: string) => void): NameList {
  return readNames(
    field,
    ['all'],
    (text) => {
      if (text.startsWith('+')) return `groups (${text}) are not supported: name the users`;
      return undefined;
    },
    problem,
  );
}

function readNames(
  tokens: readonly Token[],
  words: readonly string[],
  unsupported: (text: string) => string | undefined,
  problem: (message: string) => void,
): NameList {
  const list = new NameList();
  for (const { text, isQuoted } of tokens) {
    const message = isQuoted ? undefined : (unsupported(text) ?? unsupportedSign(text));
    if (message !== undefined) problem(message);
    else if (!isQuoted && words.includes(text)) list.words.add(text);
    else list.names.add(text);
  }
  return list;
}

function unsupportedSign(text: string): string | undefined {
  if (text.startsWith('@')) return `names from another file (${text}) are not supported: write them here`;
  if (text.startsWith('/')) return `regular expressions (${text}) are not supported: name what is meant`;
  return undefined;
}
