/** Rules of a scanner: the messages to accept and to collect, by type. One set serves any number of scanners. */
import { OptionReader } from '../kernel/option-reader.js';
import {
  Backend,
  backendName,
  Frontend,
  frontendName,
  headerBytes,
  startupHeaderBytes,
} from './message-types.js';

/** All sizes are those of whole messages in bytes, header included. */
export interface TypeRule {
  /** A longer message is a violation of the protocol. Default: what PostgreSQL and libpq accept. */
  readonly longest?: number;
  /** Up to this size a message always comes in one piece: collected if chunks cut it. Default 0. */
  readonly wholeUpTo?: number;
  /** Minimum size of the first piece of a longer message. Default: the header. */
  readonly head?: number;
}

/** Rules for the messages of one direction that are not as usual. */
export type RulesFor<Types> = { readonly [name in keyof Types]?: TypeRule };

export type Direction = 'startup' | 'frontend' | 'backend';

/** Indexed by type byte. Typed arrays, since every message looks into them. */
export class ScanRules {
  readonly direction: Direction;
  /** 4 before the first packet, which has no type byte; 5 ever after. */
  readonly headerBytes: number;
  /** The largest value of the length word; 0 for a type that does not exist. */
  readonly longestLength = new Int32Array(256);
  readonly wholeUpTo = new Int32Array(256);
  readonly head = new Int32Array(256);

  constructor(direction: Direction) {
    this.direction = direction;
    this.headerBytes = direction === 'startup' ? startupHeaderBytes : headerBytes;
  }

  /** @internal */
  set(type: number, longest: number, wholeUpTo: number, head: number): void {
    this.longestLength[type] = longest - (this.headerBytes - startupHeaderBytes);
    this.wholeUpTo[type] = wholeUpTo;
    this.head[type] = head;
  }

  /** For texts: the name of a message of this direction. */
  nameOf(type: number): string {
    if (this.direction === 'startup') return 'StartupMessage';
    return this.direction === 'frontend' ? frontendName(type) : backendName(type);
  }
}

const noBody = headerBytes;
/** PostgreSQL's limit for messages that only hold a name or so. */
const small = 10_001;
/** The most that PostgreSQL accepts of any message from a client. */
const largeFromClient = 0x3fff_ffff;
/** A server fills one buffer of at most 1 GiB, and puts the header before it. */
const largeFromServer = 0x4000_0004;
/** libpq takes a longer one for lost synchronisation, unless it is of a type that can be large. */
const ordinaryFromServer = 30_001;
const countedShorts = headerBytes + 3 + 2 * 0xffff;
/** PostgreSQL's limit of 10,000 bytes, to which it does not count the length word. */
const largestStartupPacket = 10_004;
/** The largest password, token or SASL message that PostgreSQL accepts. */
const largestPassword = 65_536;

const longestFromClient: Readonly<Record<keyof typeof Frontend, number>> = {
  bind: largeFromClient,
  close: small,
  describe: small,
  execute: small,
  functionCall: largeFromClient,
  flush: noBody,
  parse: largeFromClient,
  query: largeFromClient,
  sync: noBody,
  terminate: noBody,
  copyDone: noBody,
  copyData: largeFromClient,
  copyFail: small,
  password: largestPassword,
};

const longestFromServer: Readonly<Record<keyof typeof Backend, number>> = {
  parseComplete: noBody,
  bindComplete: noBody,
  closeComplete: noBody,
  notification: largeFromServer,
  commandComplete: ordinaryFromServer,
  dataRow: largeFromServer,
  error: largeFromServer,
  copyInResponse: countedShorts,
  copyOutResponse: countedShorts,
  emptyQuery: noBody,
  backendKeyData: headerBytes + 4 + 256,
  notice: largeFromServer,
  authentication: headerBytes + 4 + 65_535,
  parameterStatus: ordinaryFromServer,
  rowDescription: largeFromServer,
  functionCallResponse: largeFromServer,
  copyBothResponse: countedShorts,
  readyForQuery: headerBytes + 1,
  copyDone: noBody,
  copyData: largeFromServer,
  noData: noBody,
  portalSuspended: noBody,
  parameterDescription: headerBytes + 2 + 4 * 0xffff,
  negotiateProtocolVersion: ordinaryFromServer,
};

/** For the first packet of a client, which is always delivered whole. */
export const startupRules: ScanRules = new ScanRules('startup');
startupRules.set(0, largestStartupPacket, largestStartupPacket, startupHeaderBytes);

/** For a client that is not authenticated yet: passwords and SASL messages, always whole, and nothing else. */
export const authenticationRules: ScanRules = new ScanRules('frontend');
authenticationRules.set(Frontend.password, largestPassword, largestPassword, headerBytes);

/** For messages of an authenticated client. */
export function frontendRules(own: RulesFor<Omit<typeof Frontend, 'password'>> = {}): ScanRules {
  const { password: _, ...types } = Frontend;
  return makeRules(new ScanRules('frontend'), types, longestFromClient, own);
}

/** For messages of a server. */
export function backendRules(own: RulesFor<typeof Backend> = {}): ScanRules {
  return makeRules(new ScanRules('backend'), Backend, longestFromServer, own);
}

function makeRules<Names extends string>(
  rules: ScanRules,
  types: Readonly<Record<Names, number>>,
  longest: Readonly<Record<NoInfer<Names>, number>>,
  own: object,
): ScanRules {
  const read = new OptionReader(own);
  for (const name of Object.keys(types) as Names[]) {
    const group = read.group(name) ?? new OptionReader({});
    rules.set(
      types[name],
      group.integer('longest', longest[name], { min: headerBytes, max: 0x7fff_ffff }),
      group.integer('wholeUpTo', 0, { min: 0, max: 0x7fff_ffff }),
      group.integer('head', headerBytes, { min: headerBytes, max: 0x7fff_ffff }),
    );
    group.refuseUnknown();
  }
  read.refuseUnknown();
  read.throwIfAnyProblem();
  return rules;
}
