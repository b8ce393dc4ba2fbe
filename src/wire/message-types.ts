/** The numbers of the protocol: type bytes of both directions, their names, and the codes of the first packet. */

/** Type bytes of messages from a client. */
export const Frontend = {
  bind: 0x42, // B
  close: 0x43, // C
  describe: 0x44, // D
  execute: 0x45, // E
  functionCall: 0x46, // F
  flush: 0x48, // H
  parse: 0x50, // P
  query: 0x51, // Q
  sync: 0x53, // S
  terminate: 0x58, // X
  copyDone: 0x63, // c
  copyData: 0x64, // d
  copyFail: 0x66, // f
  /** PasswordMessage, SASLInitialResponse, SASLResponse or GSSResponse: only the exchange tells which. */
  password: 0x70, // p
} as const;

/** Type bytes of messages from a server. */
export const Backend = {
  parseComplete: 0x31, // 1
  bindComplete: 0x32, // 2
  closeComplete: 0x33, // 3
  notification: 0x41, // A
  commandComplete: 0x43, // C
  dataRow: 0x44, // D
  error: 0x45, // E
  copyInResponse: 0x47, // G
  copyOutResponse: 0x48, // H
  emptyQuery: 0x49, // I
  backendKeyData: 0x4b, // K
  notice: 0x4e, // N
  authentication: 0x52, // R
  parameterStatus: 0x53, // S
  rowDescription: 0x54, // T
  functionCallResponse: 0x56, // V
  copyBothResponse: 0x57, // W
  readyForQuery: 0x5a, // Z
  copyDone: 0x63, // c
  copyData: 0x64, // d
  noData: 0x6e, // n
  portalSuspended: 0x73, // s
  parameterDescription: 0x74, // t
  negotiateProtocolVersion: 0x76, // v
} as const;

/** The target of Describe and Close. */
export const Target = { portal: 0x50, statement: 0x53 } as const;
/** The target of Describe and Close. */
export type Target = (typeof Target)[keyof typeof Target];

/** The byte of ReadyForQuery. */
export const TransactionStatus = { idle: 0x49, inTransaction: 0x54, failed: 0x45 } as const;
/** The byte of ReadyForQuery. */
export type TransactionStatus = (typeof TransactionStatus)[keyof typeof TransactionStatus];

/** The second word of the first packet: a version (major in the upper half, minor in the lower) or a request. */
export const StartupCode = {
  version30: 0x0003_0000,
  version32: 0x0003_0002,
  cancelRequest: 80_877_102,
  sslRequest: 80_877_103,
  gssEncRequest: 80_877_104,
} as const;

/** The first byte of a TLS handshake, from a client that wants TLS without asking first. */
export const tlsHandshakeByte = 0x16;

/** Bytes of a cancel key: exactly the smallest number in protocol 3.0, up to the largest from 3.2 on. */
export const cancelKeyBytes = { smallest: 4, largest: 256 } as const;

/** The type byte and the length word. */
export const headerBytes = 5;

/** The length word alone: all the header that the first packet of a client has. */
export const startupHeaderBytes = 4;

/** For texts: `Bind`, or `type 0x7a` for an unknown byte. */
export function frontendName(type: number): string {
  return nameOf(Frontend, type);
}

/** For texts: `DataRow`, or `type 0x7a` for an unknown byte. */
export function backendName(type: number): string {
  return nameOf(Backend, type);
}

function nameOf(types: Readonly<Record<string, number>>, type: number): string {
  const name = Object.keys(types).find((key) => types[key] === type);
  if (name === undefined) return `type 0x${type.toString(16).padStart(2, '0')}`;
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}
