/** How much TLS is wanted on the way to a server, in the words of libpq. */

/**
 * `allow`: without, and with it if the server wants no other. `prefer`: with it, if the server can. `require`: with it,
 * whoever the server is, unless it was said who signs its certificate. `verify-ca`: with a certificate that is signed by
 * whom we trust. `verify-full`: and that is for this host.
 */
export type TlsMode = 'disable' | 'allow' | 'prefer' | 'require' | 'verify-ca' | 'verify-full';

/** `direct`: TLS from the first byte (PostgreSQL 17 and newer); `postgres`: after asking whether the server can. */
export type TlsNegotiation = 'postgres' | 'direct';

/** Whether a dial begins with TLS, and what it does about the server's certificate. */
export interface TlsDemand {
  readonly wantsTls: boolean;
  readonly needsTls: boolean;
  readonly verifiesSigner: boolean;
  readonly verifiesHost: boolean;
}

/** `hasCa`: it was said who signs the server's certificate. libpq then verifies with `require` too. */
export function demandOf(mode: TlsMode, hasCa: boolean): TlsDemand {
  return {
    wantsTls: mode !== 'disable' && mode !== 'allow',
    needsTls: mode === 'require' || mode === 'verify-ca' || mode === 'verify-full',
    verifiesSigner: mode === 'verify-ca' || mode === 'verify-full' || (mode === 'require' && hasCa),
    verifiesHost: mode === 'verify-full',
  };
}

/**
 * With what mode to dial again, once, when the server has refused the login: `allow` and `prefer` try it both ways.
 * `hadTls` says how it was tried.
 */
export function otherWayOf(mode: TlsMode, hadTls: boolean): TlsMode | undefined {
  if (mode === 'allow' && !hadTls) return 'require';
  if (mode === 'prefer' && hadTls) return 'disable';
  return undefined;
}
