/** Server connections that are logged in to with tokens of AWS IAM. Who makes the tokens is said from outside. */
import { isTokenExpired } from '../../wire/dsql-refusals.js';
import type { DatabaseConfig } from '../config/pooler-config.js';
import { BackendRefusedError, ServingError, TokenRefusedError } from '../errors.js';
import type { Backend } from './backend.js';
import type { OpenBackend } from './backend-dialer.js';
import { type DialedHost, openBackend, type ServerPlan } from './open-backend.js';
import type { Opening } from './opening.js';

/** Whom a token is to let in, and where. */
export interface IamTokenRequest {
  readonly iam: Exclude<DatabaseConfig['iam'], 'none'>;
  readonly host: string;
  readonly port: number;
  /** As the configuration says; undefined where it does not. */
  readonly region: string | undefined;
  readonly user: string;
  /** The server has just refused this one: another one is needed. */
  readonly refused: string | undefined;
}

/** Makes a token, or answers with one that is still good. */
export type MakeIamToken = (request: IamTokenRequest) => Promise<string>;

export const noTokens: MakeIamToken = async () => {
  throw new ServingError('Tokens of AWS IAM can not be made here.');
};

export interface IamLogin extends Pick<IamTokenRequest, 'iam' | 'region' | 'user'> {
  readonly makeToken: MakeIamToken;
}

/**
 * Opens connections with tokens. A server that refuses a token, which may be too old, is answered with `TokenRefusedError`, and the next
 * connection is opened with a fresh one: it is another dial, with a permit of its own.
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

/** RDS has its tokens checked by PAM, and says 28000 for that; others say 28P01. DSQL says 08006, and why in the hint. */
function isOfToken(error: unknown): error is BackendRefusedError {
  if (!(error instanceof BackendRefusedError)) return false;
  const { code, message, hint } = error.fields;
  return code.startsWith('28') || isTokenExpired(message, hint);
}
