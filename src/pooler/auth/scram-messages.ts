/**
 * The four messages of SCRAM (RFC 5802, section 7) as data. A malformed message throws a SaslMessageError. Texts have one
 * character per byte received, so that signatures cover exactly the bytes sent.
 */
import { SqlState } from '../../wire/sql-states.js';
import { fromBase64 } from './base64.js';
import { channelBindingType } from './channel-binding.js';
import { SaslMessageError } from './errors.js';
import { scramKeyBytes } from './scram-keys.js';

export const scramMechanism = 'SCRAM-SHA-256';
export const scramPlusMechanism = 'SCRAM-SHA-256-PLUS';

/** PostgreSQL's limit for messages of a client, and more than any server needs. */
const largestMessage = 1_024;

/** The client's view of channel binding: `n` it can't, `y` the server can't, `p` it is in use. */
export type BindingFlag = 'n' | 'y' | 'p';

export interface ClientFirst {
  readonly flag: BindingFlag;
  /** Repeated in the last message, which proves that it was not changed on the way. */
  readonly header: string;
  readonly nonce: string;
  /** The message without the header. */
  readonly bare: string;
}

export interface ClientFinal {
  /** The header and the binding data, in base64. */
  readonly binding: string;
  readonly nonce: string;
  readonly proof: Buffer;
  readonly withoutProof: string;
}

export interface ServerFirst {
  readonly nonce: string;
  readonly salt: Buffer;
  readonly iterations: number;
  readonly text: string;
}

export function readClientFirst(data: Buffer): ClientFirst {
  const kind = 'client-first-message';
  const text = textOf(kind, data);
  const [flags = '', identity, ...attributes] = text.split(',');
  const flag = readFlag(kind, flags);
  if (identity === undefined) throw malformed(kind, 'it ends after its first part');
  if (identity !== '')
    throw new SaslMessageError(
      'The client wants to act as another user (authorization identity), which is not supported.',
      SqlState.featureNotSupported,
    );
  const read = new AttributeReader(kind, attributes);
  // The user is known from the startup packet.
  read.value('n');
  const nonce = readNonce(kind, read.value('r'));
  read.passOverExtensions();
  return { flag, header: `${flags},,`, nonce, bare: attributes.join(',') };
}

function readFlag(kind: string, flags: string): BindingFlag {
  if (flags === 'n' || flags === 'y') return flags;
  if (!flags.startsWith('p=')) throw malformed(kind, 'it has no flag for channel binding');
  if (flags !== `p=${channelBindingType}`)
    throw new SaslMessageError(`Only ${channelBindingType} is supported for channel binding.`);
  return 'p';
}

export function readClientFinal(data: Buffer): ClientFinal {
  const kind = 'client-final-message';
  const text = textOf(kind, data);
  const attributes = text.split(',');
  const proofText = attributes.pop() as string;
  const read = new AttributeReader(kind, attributes);
  const binding = read.value('c');
  const nonce = readNonce(kind, read.value('r'));
  read.passOverExtensions();
  const proof = proofText.startsWith('p=') ? fromBase64(proofText.slice(2)) : undefined;
  if (proof?.length !== scramKeyBytes) throw malformed(kind, 'it does not end with a proof');
  return { binding, nonce, proof, withoutProof: attributes.join(',') };
}

export function readServerFirst(data: Buffer): ServerFirst {
  const kind = 'server-first-message';
  const text = textOf(kind, data);
  const read = new AttributeReader(kind, text.split(','));
  const nonce = readNonce(kind, read.value('r'));
  const salt = fromBase64(read.value('s'));
  if (salt === undefined || salt.length === 0) throw malformed(kind, 'its salt is no base64');
  const count = read.value('i');
  if (!/^[1-9]\d{0,9}$/.test(count)) throw malformed(kind, 'its count of iterations is no number');
  read.passOverExtensions();
  return { nonce, salt, iterations: Number(count), text };
}

/** The server's signature; a text when the server refuses. */
export function readServerFinal(data: Buffer): Buffer | string {
  const kind = 'server-final-message';
  const text = textOf(kind, data);
  // An error may stand here, as a few words without spaces.
  const refusal = /^e=([\w-]{1,100})/.exec(text)?.[1];
  if (refusal !== undefined) return refusal;
  const read = new AttributeReader(kind, text.split(','));
  const signature = fromBase64(read.value('v'));
  if (signature?.length !== scramKeyBytes) throw malformed(kind, 'its signature has a wrong length');
  read.passOverExtensions();
  return signature;
}

/** Attributes in their required order: a letter, `=`, a value. */
class AttributeReader {
  readonly #kind: string;
  readonly #attributes: readonly string[];
  #at = 0;

  constructor(kind: string, attributes: readonly string[]) {
    this.#kind = kind;
    this.#attributes = attributes;
  }

  value(name: string): string {
    const attribute = this.#attributes[this.#at++];
    if (attribute?.startsWith('m=') === true)
      throw new SaslMessageError(
        `The ${this.#kind} asks for a SCRAM extension that is not supported.`,
        SqlState.featureNotSupported,
      );
    if (attribute?.startsWith(`${name}=`) !== true)
      throw malformed(this.#kind, `"${name}=" was expected as attribute ${this.#at}`);
    return attribute.slice(2);
  }

  /** Further attributes must be well-formed, and are ignored. */
  passOverExtensions(): void {
    for (; this.#at < this.#attributes.length; this.#at++) {
      if (!/^[A-Za-z]=/.test(this.#attributes[this.#at] as string))
        throw malformed(this.#kind, `its attribute ${this.#at + 1} has no name`);
    }
  }
}

function readNonce(kind: string, nonce: string): string {
  if (!/^[\x21-\x7e]+$/.test(nonce)) throw malformed(kind, 'its nonce is empty or not printable');
  return nonce;
}

function textOf(kind: string, data: Buffer): string {
  if (data.length > largestMessage)
    throw malformed(kind, `it has ${data.length} bytes, and at most ${largestMessage} are possible`);
  if (data.includes(0)) throw malformed(kind, 'it has a zero byte');
  return data.toString('latin1');
}

function malformed(kind: string, what: string): SaslMessageError {
  return new SaslMessageError(`Malformed SCRAM message (${kind}): ${what}.`);
}
