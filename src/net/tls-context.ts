/** Certificates, keys and rules of TLS, which can be replaced while connections use them. */
import { constants, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { TlsMaterialError } from './errors.js';

/** PEM, as read from files. */
export interface TlsMaterial {
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  readonly passphrase?: string | undefined;
  /** CAs for the other side's certificate. Default: those of Node. */
  readonly ca?: string | Buffer | undefined;
  /** Revoked certificates. */
  readonly crl?: string | Buffer | undefined;
  /** OpenSSL's names, separated by colons, including those of TLS 1.3. */
  readonly ciphers?: string | undefined;
  readonly ecdhCurve?: string | undefined;
  /** Towards clients: an exchange of keys by finite fields, in a group as strong as our certificate. Without it there is none. */
  readonly dhparam?: 'auto' | undefined;
  /** Default: TLSv1.2. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
  readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
}

/** Towards clients we are the server, towards PostgreSQL the client. */
export type TlsRole = 'server' | 'client';

interface Made {
  readonly context: SecureContext;
  readonly hasCa: boolean;
  readonly expiresAt: Date | undefined;
}

export class TlsContext {
  readonly role: TlsRole;
  #made: Made;

  /** Throws a `TlsMaterialError`. */
  constructor(role: TlsRole, material: TlsMaterial) {
    this.role = role;
    this.#made = make(role, material);
  }

  get current(): SecureContext {
    return this.#made.context;
  }

  /** True if a CA for the other side's certificate was configured. */
  get hasCa(): boolean {
    return this.#made.hasCa;
  }

  /** When our own certificate expires. */
  get expiresAt(): Date | undefined {
    return this.#made.expiresAt;
  }

  /**
   * Uses this material for connections from now on; existing ones go on unchanged. Returns an error if the material is
   * invalid; the previous one then stays in use.
   */
  replace(material: TlsMaterial, now: Date = new Date()): TlsMaterialError | undefined {
    try {
      const made = make(this.role, material);
      const { expiresAt } = made;
      if (expiresAt !== undefined && expiresAt <= now)
        return new TlsMaterialError(
          `The new certificate is not used: it expired on ${expiresAt.toISOString()}.`,
        );
      this.#made = made;
      return undefined;
    } catch (error) {
      if (error instanceof TlsMaterialError) return error;
      throw error;
    }
  }
}

function make(role: TlsRole, material: TlsMaterial): Made {
  const { cert, key, ca } = material;
  if ((cert === undefined) !== (key === undefined))
    throw new TlsMaterialError(
      `A certificate and its key belong together: the ${cert === undefined ? 'certificate' : 'key'} is missing.`,
    );
  if (role === 'server' && cert === undefined)
    throw new TlsMaterialError('To offer TLS to clients, a certificate and its key are needed.');
  try {
    return {
      context: createSecureContext(contextOptions(role, material)),
      hasCa: ca !== undefined,
      expiresAt: cert === undefined ? undefined : new Date(new X509Certificate(cert).validTo),
    };
  } catch (error) {
    // OpenSSL names the part that it rejects, and shows nothing of it.
    throw new TlsMaterialError(
      `The TLS certificate, key or settings can't be used: ${reasonOf(error)}.`,
      error,
    );
  }
}

function contextOptions(role: TlsRole, material: TlsMaterial): SecureContextOptions {
  const options: SecureContextOptions = { minVersion: 'TLSv1.2' };
  for (const [name, value] of Object.entries(material)) {
    if (value !== undefined) Object.assign(options, { [name]: value });
  }
  if (role === 'server') {
    options.honorCipherOrder = true;
    // As in PostgreSQL, whose clients resume no session and renegotiate nothing.
    options.secureOptions = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;
    options.sessionIdContext = 'headgate';
  }
  return options;
}

function reasonOf(error: unknown): string {
  const { reason, message } = error as { reason?: unknown; message?: unknown };
  return typeof reason === 'string' ? reason : String(message);
}
