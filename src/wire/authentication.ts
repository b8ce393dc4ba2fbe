/** The server's side of authenticating a client: all AuthenticationXxx messages. */
import { BodyReader } from './body-reader.js';
import { UnsendableMessageError } from './errors.js';
import { Backend } from './message-types.js';
import type { MessageWriter } from './message-writer.js';

/** Buffers that were read are views of the message's bytes. */
export type Authentication =
  | { readonly kind: 'ok' | 'kerberosV5' | 'cleartext' | 'gss' | 'sspi' }
  | { readonly kind: 'md5' /** 4 bytes. */; readonly salt: Buffer }
  | { readonly kind: 'gssContinue' | 'saslContinue' | 'saslFinal'; readonly data: Buffer }
  | { readonly kind: 'sasl' /** Most preferred first. */; readonly mechanisms: readonly string[] }
  /** A request that is not known here; `code` is its number. */
  | { readonly kind: 'other'; readonly code: number; readonly data: Buffer };

const codes = {
  ok: 0,
  kerberosV5: 2,
  cleartext: 3,
  md5: 5,
  gss: 7,
  gssContinue: 8,
  sspi: 9,
  sasl: 10,
  saslContinue: 11,
  saslFinal: 12,
} as const;

const saltBytes = 4;

export function readAuthentication(source: Buffer, start: number, end: number): Authentication {
  const read = new BodyReader('Authentication', source, start, end);
  const request = readRequest(read, read.int32());
  read.finish();
  return request;
}

function readRequest(read: BodyReader, code: number): Authentication {
  switch (code) {
    case codes.ok:
      return { kind: 'ok' };
    case codes.kerberosV5:
      return { kind: 'kerberosV5' };
    case codes.cleartext:
      return { kind: 'cleartext' };
    case codes.md5:
      return { kind: 'md5', salt: read.bytes(saltBytes) };
    case codes.gss:
      return { kind: 'gss' };
    case codes.gssContinue:
      return { kind: 'gssContinue', data: read.rest() };
    case codes.sspi:
      return { kind: 'sspi' };
    case codes.sasl:
      return { kind: 'sasl', mechanisms: readMechanisms(read) };
    case codes.saslContinue:
      return { kind: 'saslContinue', data: read.rest() };
    case codes.saslFinal:
      return { kind: 'saslFinal', data: read.rest() };
    default:
      return { kind: 'other', code, data: read.rest() };
  }
}

function readMechanisms(read: BodyReader): string[] {
  const mechanisms: string[] = [];
  for (let name = read.text(); name !== ''; name = read.text()) mechanisms.push(name);
  return mechanisms;
}

export function writeAuthentication(writer: MessageWriter, request: Authentication): void {
  writer.begin(Backend.authentication);
  writer.int32(request.kind === 'other' ? request.code : codes[request.kind]);
  if ('data' in request) writer.bytes(request.data);
  if (request.kind === 'md5') {
    if (request.salt.length !== saltBytes)
      throw new UnsendableMessageError(`A salt has 4 bytes, not ${request.salt.length}.`);
    writer.bytes(request.salt);
  }
  if (request.kind === 'sasl') {
    for (const mechanism of request.mechanisms) {
      if (mechanism === '')
        throw new UnsendableMessageError('A mechanism without a name would end the list.');
      writer.text(mechanism);
    }
    writer.byte(0);
  }
  writer.end();
}
