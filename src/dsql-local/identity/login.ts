/** Decides about a login: the token must be good, a policy must allow its action, and the database role must be granted. */
import { accountOf, type Identity } from './accounts.js';
import type { IamGrants } from './iam-grants.js';
import { type TokenExpectations, verifyToken } from './token-verifier.js';

export interface LoginRules extends TokenExpectations {
  readonly grants: IamGrants;
  /** `arn:aws:dsql:us-east-1:000000000000:cluster/<id>` */
  readonly clusterArn: string;
}

/** An ErrorResponse in place of the login. */
export interface LoginRefusal {
  readonly severity: 'FATAL';
  readonly code: '08006';
  readonly message: 'unable to accept connection, access denied';
  readonly hint: string;
}

export type LoginVerdict = { readonly identity: Identity } | { readonly refusal: LoginRefusal };

export function judgeLogin(token: string, rules: LoginRules): LoginVerdict {
  const verified = verifyToken(token, rules);
  if ('hint' in verified) return refuse(verified.hint);
  const { identity, action } = verified;
  const { arn } = identity;
  if (accountOf(arn) !== rules.clusterArn.split(':')[4])
    return refuse(`User: ${arn} is not authorized to access this resource`);
  if (!identity.actions.has(action))
    return refuse(
      `User: ${arn} is not authorized to perform: dsql:${action} on resource: ${rules.clusterArn} ` +
        `because no identity-based policy allows the dsql:${action} action`,
    );
  if (rules.user !== 'admin' && !rules.grants.allows(rules.user, arn))
    return refuse(
      `User: ${arn} is not authorized to access this resource (no AWS IAM GRANT of the role ${rules.user} to it)`,
    );
  return { identity };
}

function refuse(hint: string): LoginVerdict {
  return {
    refusal: {
      severity: 'FATAL',
      code: '08006',
      message: 'unable to accept connection, access denied',
      hint,
    },
  };
}
