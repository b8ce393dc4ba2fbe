/** The wanted level of TLS towards a server, in the words of libpq. */

/**
 * `allow`: without TLS, and with it if the server requires it. `prefer`: with TLS, if the server supports it. `require`:
 * with TLS, for any server, unless a CA for its certificate is configured. `verify-ca`: with a certificate signed by a
 * trusted CA. `verify-full`: and that is for this host.
 */
export type TlsMode = 'disable' | 'allow' | 'prefer' | 'require' | 'verify-ca' | 'verify-full';

/** `direct`: TLS from the first byte (PostgreSQL 17 and newer); `postgres`: after asking whether the server can. */
export type TlsNegotiation = 'postgres' | 'direct';

/** Decides if a dial begins with TLS, and how the server's certificate is checked. */
export interface TlsDemand {
  readonly wantsTls: boolean;
  readonly needsTls: boolean;
  readonly verifiesSigner: boolean;
  readonly verifiesHost: boolean;
}

/** `hasCa`: a CA for the server's certificate is configured. libpq then verifies with `require` too. */
export function demandOf(mode: TlsMode, hasCa: boolean): TlsDemand {
  return {
    wantsTls: mode !== 'disable' && mode !== 'allow',
    needsTls: mode === 'require' || mode === 'verify-ca' || mode === 'verify-full',
    verifiesSigner: mode === 'verify-ca' || mode === 'verify-full' || (mode === 'require' && hasCa),
    verifiesHost: mode === 'verify-full',
  };
}

/**
 * The mode for a second dial, once, after the server has refused the login: `allow` and `prefer` try both ways. `hadTls`
 * tells how the first was made.
 */
export function otherWayOf(mode: TlsMode, hadTls: boolean): TlsMode | undefined {
  if (mode === 'allow' && !hadTls) return 'require';
  if (mode === 'prefer' && hadTls) return 'disable';
  return undefined;
}
