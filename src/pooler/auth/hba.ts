/**
 * Access rules in the format of pg_hba.conf, of which PgBouncer and Headgate support a part. The first rule that matches
 * decides; without one, the login is refused. Unsupported rules are problems and never skipped, since a skipped rule could let
 * in a client that it should keep out.
 */

import { parseIpAddress } from '../../net/ip-address.js';
import { type FileContent, type FileProblem, fileContent } from './file-problem.js';
import { type Field, type FieldLine, readFields } from './file-tokens.js';
import { type NameList, readDatabases, readUsers, type WantedNames } from './hba-names.js';
import type { IdentMaps } from './ident-map.js';
import { type IpNetwork, isInNetwork, networkOfMask, parseNetwork } from './ip-network.js';

/** Authentication method. `password`: in clear text. */
export type AuthMethod = 'trust' | 'reject' | 'password' | 'md5' | 'scram-sha-256' | 'cert' | 'peer';

export interface HbaRule {
  /** Line in its file. */
  readonly line: number;
  readonly type: HbaType;
  readonly databases: NameList;
  readonly users: NameList;
  /** `undefined` for all addresses, and for Unix sockets. */
  readonly network: IpNetwork | undefined;
  readonly method: AuthMethod;
  /** Ident map that tells which certificate or system user may log in as which user. */
  readonly map: string | undefined;
}

export interface HbaConnection extends WantedNames {
  readonly isUnix: boolean;
  readonly isEncrypted: boolean;
  /** An internet address; of no meaning for a Unix socket. */
  readonly address: string;
}

const types = ['local', 'host', 'hostssl', 'hostnossl'] as const;
type HbaType = (typeof types)[number];

const methods: readonly AuthMethod[] = [
  'trust',
  'reject',
  'password',
  'md5',
  'scram-sha-256',
  'cert',
  'peer',
];

export class HbaRules {
  readonly rules: readonly HbaRule[];

  constructor(rules: readonly HbaRule[]) {
    this.rules = rules;
  }

  /** The first rule that matches. */
  find(connection: HbaConnection): HbaRule | undefined {
    const address = connection.isUnix ? undefined : parseIpAddress(connection.address);
    return this.rules.find(
      (rule) =>
        isOfType(rule, connection) &&
        isFrom(rule.network, address) &&
        rule.databases.matchesDatabase(connection) &&
        rule.users.matchesUser(connection),
    );
  }
}

function isOfType({ type }: HbaRule, { isUnix, isEncrypted }: HbaConnection): boolean {
  if (isUnix) return type === 'local';
  return type === 'host' || type === (isEncrypted ? 'hostssl' : 'hostnossl');
}

function isFrom(network: IpNetwork | undefined, address: Buffer | undefined): boolean {
  return network === undefined || (address !== undefined && isInNetwork(address, network));
}

export interface HbaOptions {
  /** Called for an unsupported method: its rule then rejects what it matches. Without this callback it is a problem. */
  readonly rejected?: (problem: FileProblem) => void;
}

/** Methods of pg_hba.conf that are not supported. */
const otherMethods = ['gss', 'sspi', 'ident', 'ldap', 'radius', 'pam', 'bsd', 'oauth'];

/** With `maps`, a rule that names a map that is not among them is a problem. */
export function parseHba(
  text: string,
  maps?: IdentMaps,
  { rejected }: HbaOptions = {},
): FileContent<HbaRules> {
  const problems: FileProblem[] = [];
  const rules = readFields(text, problems).map((line) => readRule(line, problems, maps, rejected));
  return fileContent(new HbaRules(rules.filter((rule) => rule !== undefined)), problems);
}

/** Reads the fields of a line one by one, and collects problems. */
class RuleReader {
  readonly #fields: readonly Field[];
  readonly problem: (message: string) => void;
  #at = 0;

  constructor({ line, fields }: FieldLine, problems: FileProblem[]) {
    this.#fields = fields;
    this.problem = (message) => problems.push({ line, message });
  }

  /** The next field, if it is one word. */
  get peek(): string | undefined {
    const field = this.#fields[this.#at];
    return field?.length === 1 ? field[0].text : undefined;
  }

  next(what: string): Field | undefined {
    const field = this.#fields[this.#at++];
    if (field === undefined) this.problem(`the line ends before its ${what}`);
    return field;
  }

  /** The next field, which must not be a list. */
  nextWord(what: string): string | undefined {
    const field = this.next(what);
    if (field !== undefined && field.length > 1) this.problem(`the ${what} is a list, and must be one`);
    return field?.[0].text;
  }

  rest(): string[] {
    return this.#fields.slice(this.#at).map((field) => field.map(({ text }) => text).join(','));
  }
}

function readRule(
  line: FieldLine,
  problems: FileProblem[],
  maps: IdentMaps | undefined,
  rejected: HbaOptions['rejected'],
): HbaRule | undefined {
  const read = new RuleReader(line, problems);
  const type = readType(read);
  const databases = read.next('databases');
  const users = databases && read.next('users');
  if (type === undefined || databases === undefined || users === undefined) return undefined;
  const names = [readDatabases(databases, read.problem), readUsers(users, read.problem)] as const;
  const network = type === 'local' ? undefined : readAddress(read);
  if (network === 'missing') return undefined;
  if (rejected !== undefined && otherMethods.includes(read.peek ?? '')) {
    const message = `the method ${read.peek} is not supported: connections that this line matches are rejected`;
    rejected({ line: line.line, message });
    return {
      line: line.line,
      type,
      databases: names[0],
      users: names[1],
      network,
      method: 'reject',
      map: undefined,
    };
  }
  const method = readMethod(read, type);
  const map = readMap(read, method, maps);
  if (method === undefined) return undefined;
  return { line: line.line, type, databases: names[0], users: names[1], network, method, map };
}

function readType(read: RuleReader): HbaType | undefined {
  const text = read.nextWord('type');
  const type = types.find((known) => known === text);
  if (type === undefined) read.problem(`"${text}" is not supported: a line begins with ${types.join(', ')}`);
  return type;
}

/** `undefined` for all; `missing` when the rest of the line can't be read either. */
function readAddress(read: RuleReader): IpNetwork | undefined | 'missing' {
  const text = read.nextWord('address');
  if (text === undefined) return 'missing';
  if (text === 'all') return undefined;
  const address = parseIpAddress(text);
  if (address !== undefined) return readMask(read, text, address);
  const network = parseNetwork(text);
  if (network === undefined)
    read.problem(
      `"${text}" is not supported: an address is like 10.0.0.0/8, ::1/128, 10.0.0.0 255.0.0.0 or all`,
    );
  return network;
}

function readMask(read: RuleReader, text: string, address: Buffer): IpNetwork | 'missing' {
  const maskText = read.nextWord('mask');
  if (maskText === undefined) return 'missing';
  const mask = parseIpAddress(maskText);
  const network = mask && networkOfMask(address, mask);
  if (network !== undefined) return network;
  read.problem(
    `"${maskText}" is no mask for ${text}; it can also be written as ${text}/${8 * address.length}`,
  );
  return 'missing';
}

function readMethod(read: RuleReader, type: HbaType): AuthMethod | undefined {
  const text = read.nextWord('method');
  if (text === undefined) return undefined;
  const method = methods.find((known) => known === text);
  if (method === undefined)
    read.problem(`the method "${text}" is not supported: there are ${methods.join(', ')}`);
  // A rule for host also applies with TLS, and without TLS there is no certificate.
  if (method === 'cert' && type !== 'hostssl' && type !== 'host')
    read.problem(`the method cert needs TLS: write hostssl in place of ${type}`);
  if (method === 'peer' && type !== 'local')
    read.problem(`the method peer is for Unix sockets: write local in place of ${type}`);
  return method;
}

function readMap(
  read: RuleReader,
  method: AuthMethod | undefined,
  maps: IdentMaps | undefined,
): string | undefined {
  let map: string | undefined;
  for (const option of read.rest()) {
    const name = /^map=(.+)$/s.exec(option)?.[1];
    if (name === undefined) read.problem(`the option "${option}" is not supported: there is map=NAME`);
    else if (method !== 'cert' && method !== 'peer')
      read.problem('a map has a meaning with the methods cert and peer only');
    else if (maps?.has(name) === false) read.problem(`there is no map "${name}" in the ident file`);
    map = name ?? map;
  }
  return map;
}
