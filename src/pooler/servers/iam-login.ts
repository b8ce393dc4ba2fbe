/** Opens server connections that log in with AWS IAM tokens. The caller supplies the function that makes the tokens. */
import { isTokenExpired } from '../../wire/dsql-refusals.js';
import type { DatabaseConfig } from '../config/pooler-config.js';
import { BackendRefusedError, ServingError, TokenRefusedError } from '../errors.js';
import type { Backend } from './backend.js';
import type { OpenBackend } from './backend-dialer.js';
import { type DialedHost, openBackend, type ServerPlan } from './open-backend.js';
import type { Opening } from './opening.js';

/** The user and server that a token is for. */
export interface IamTokenRequest {
  readonly iam: Exclude<DatabaseConfig['iam'], 'none'>;
  readonly host: string;
  readonly port: number;
  /** From the configuration; undefined where it sets none. */
  readonly region: string | undefined;
  readonly user: string;
  /** Token that the server has just refused, so that another one is needed. */
  readonly refused: string | undefined;
}

/** Makes a token, or returns one that is still valid. */
export type MakeIamToken = (request: IamTokenRequest) => Promise<string>;

export const noTokens: MakeIamToken = async () => {
  throw new ServingError('Tokens of AWS IAM can not be made here.');
};

export interface IamLogin extends Pick<IamTokenRequest, 'iam' | 'region' | 'user'> {
  readonly makeToken: MakeIamToken;
}

/**
 * Opens connections with tokens. A refused token, which may be too old, leads to `TokenRefusedError`; the next connection is
 * opened with a fresh one. That is another dial with its own permit.
 */
export function openerWithTokens(plan: ServerPlan, { makeToken, ...who }: IamLogin): OpenBackend {
  let refused: string | undefined;
  return async (opening: Opening): Promise<Backend> => {
    let used: string | undefined;
    const token = async ({ host = '', port = 0 }: DialedHost): Promise<string> => {
      used = await makeToken({ ...who, host, port, refused });
      return used;
    };
    const withToken: ServerPlan = {
      ...plan,
      credentials: (at) => ({ kind: 'token', token: () => token(at) }),
    };
    try {
      const backend = await openBackend(withToken, opening);
      refused = undefined;
      return backend;
    } catch (error) {
      if (used === undefined || !isOfToken(error)) throw error;
      refused = used;
      throw new TokenRefusedError(error.fields);
    }
  };
}

/** RDS has its tokens checked by PAM, and reports 28000 for that; others report 28P01. DSQL reports 08006, with the reason in the hint. */
function isOfToken(error: unknown): error is BackendRefusedError {
  if (!(error instanceof BackendRefusedError)) return false;
  const { code, message, hint } = error.fields;
  return code.startsWith('28') || isTokenExpired(message, hint);
}
