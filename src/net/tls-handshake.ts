/** Waits for a TLS handshake to end, one way or the other. */
import type { TLSSocket } from 'node:tls';
import { TlsHandshakeError } from './errors.js';

export interface HandshakePlan<Result> {
  /** Node's event at the end of the handshake: of a server, or of a client. */
  readonly event: 'secure' | 'secureConnect';
  /** Gives up when it fires. */
  readonly signal: AbortSignal | undefined;
  /** Uses the socket at once, so that no event is missed. Throws if it is not to be used. */
  readonly finish: () => Result;
}

/** Resolves when the handshake is complete; otherwise rejects once the socket is closed. */
export function handshake<Result>(socket: TLSSocket, plan: HandshakePlan<Result>): Promise<Result> {
  const { event, signal, finish } = plan;
  return new Promise((resolve, reject) => {
    let failure: unknown;
    const fail = (error: unknown): void => {
      failure ??= error;
      socket.destroy();
    };
    const abort = (): void => fail(new TlsHandshakeError('it was given up.', signal?.reason));
    const agreed = (): void => {
      try {
        const result = finish();
        forget();
        // Deferred: this call comes from the middle of OpenSSL's work, and the waiting code may write at once.
        setImmediate(resolve, result);
      } catch (error) {
        fail(error);
      }
    };
    const failed = (error: Error): void => {
      failure ??= new TlsHandshakeError(`${error.message}.`, error);
    };
    const hungUp = (): void => fail(new TlsHandshakeError('the other side hung up during the handshake.'));
    const closed = (): void => {
      hungUp();
      forget();
      reject(failure);
    };
    const forget = (): void => {
      signal?.removeEventListener('abort', abort);
      socket.off(event, agreed);
      socket.off('error', failed);
      socket.off('end', hungUp);
      socket.off('close', closed);
    };
    socket.on(event, agreed);
    socket.on('error', failed);
    // Half-open connections are allowed, so this alone closes nothing.
    socket.on('end', hungUp);
    socket.on('close', closed);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
  });
}
