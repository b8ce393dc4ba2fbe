/** Errors of connections, of connecting, and of TLS. */
import { formatDuration } from '../kernel/duration.js';
import { HeadgateError } from '../kernel/errors.js';

/** A connection was ended, and the other side did not take the remaining bytes. */
export class UnsentBytesError extends HeadgateError {
  constructor(unsent: number, waitedMs: number) {
    super(
      'HG_UNSENT_BYTES',
      `The connection was closed with ${unsent} bytes unsent: the other side did not read them within ${formatDuration(waitedMs)}.`,
    );
  }
}

/**
 * Bytes came in plain text where only a TLS handshake may follow. An attacker may have injected them, to have them taken
 * for what came through TLS; the connection is closed.
 */
export class UnencryptedBytesError extends HeadgateError {
  constructor() {
    super(
      'HG_UNENCRYPTED_BYTES',
      'The other side sent unencrypted bytes together with its request for TLS. The connection was closed, because a third party ' +
        'in between may have added them.',
    );
  }
}

/** The TLS handshake failed; `cause` is Node's error, if there is one. */
export class TlsHandshakeError extends HeadgateError {
  constructor(why: string, cause?: unknown) {
    super('HG_TLS_HANDSHAKE', `No TLS connection: ${why}`, cause === undefined ? undefined : { cause });
  }
}

/** A certificate, key or setting that TLS can't be done with. */
export class TlsMaterialError extends HeadgateError {
  constructor(why: string, cause?: unknown) {
    super('HG_TLS_MATERIAL', why, cause === undefined ? undefined : { cause });
  }
}

/**
 * Why a server was not reached: `timeout` and `aborted` came from here, `tls` means that it was reached and that TLS
 * failed, `network` is all else.
 */
export type DialFailure = 'timeout' | 'aborted' | 'tls' | 'network';

/** A server could not be connected to; `cause` is the error as it came. */
export class DialFailedError extends HeadgateError {
  readonly reason: DialFailure;

  constructor(reason: DialFailure, target: string, why: string, cause?: unknown) {
    super(
      'HG_DIAL_FAILED',
      `Could not connect to ${target}: ${why}`,
      cause === undefined ? undefined : { cause },
    );
    this.reason = reason;
  }
}

/** An address or a path that can't be listened on. */
export class ListenError extends HeadgateError {
  constructor(where: string, why: string, cause?: unknown) {
    super('HG_LISTEN', `Can't listen on ${where}: ${why}`, cause === undefined ? undefined : { cause });
  }
}
