/** Messages that are always the same bytes. Made once, never changed, to be written or appended as they are. */
import { Backend, Frontend, StartupCode, TransactionStatus } from './message-types.js';

// To the server.
export const sync: Buffer = withoutBody(Frontend.sync);
export const flush: Buffer = withoutBody(Frontend.flush);
export const terminate: Buffer = withoutBody(Frontend.terminate);
export const sslRequest: Buffer = request(StartupCode.sslRequest);
export const gssEncRequest: Buffer = request(StartupCode.gssEncRequest);

// To the client. Each of these two is the whole answer to a request for encryption: a byte, not a message.
export const encryptionAccepted: Buffer = Buffer.from('S');
export const encryptionRefused: Buffer = Buffer.from('N');

export const authenticationOk: Buffer = Buffer.from([Backend.authentication, 0, 0, 0, 8, 0, 0, 0, 0]);
export const parseComplete: Buffer = withoutBody(Backend.parseComplete);
export const bindComplete: Buffer = withoutBody(Backend.bindComplete);
export const closeComplete: Buffer = withoutBody(Backend.closeComplete);
export const noData: Buffer = withoutBody(Backend.noData);
export const portalSuspended: Buffer = withoutBody(Backend.portalSuspended);
export const emptyQueryResponse: Buffer = withoutBody(Backend.emptyQuery);
export const readyIdle: Buffer = ready(TransactionStatus.idle);
export const readyInTransaction: Buffer = ready(TransactionStatus.inTransaction);
export const readyFailed: Buffer = ready(TransactionStatus.failed);

// Either way.
export const copyDone: Buffer = withoutBody(Frontend.copyDone);

function withoutBody(type: number): Buffer {
  return Buffer.from([type, 0, 0, 0, 4]);
}

function ready(status: TransactionStatus): Buffer {
  return Buffer.from([Backend.readyForQuery, 0, 0, 0, 5, status]);
}

function request(code: number): Buffer {
  const packet = Buffer.alloc(8);
  packet.writeInt32BE(8, 0);
  packet.writeInt32BE(code, 4);
  return packet;
}
