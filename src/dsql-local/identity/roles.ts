/** The roles of the cluster: which may log in, and which are granted to IAM identities. */
import { quoteText } from '../../sql/quote.js';
import { fail } from '../session/errors.js';
import { type GrantStore, IamGrants, looksLikeIamArn } from './iam-grants.js';

/** Runs a text of the stand-in's own, one after the other. */
export type Ask = (sql: string) => Promise<(string | null)[][]>;

export class Roles {
  readonly grants: IamGrants;
  readonly #ask: Ask;

  private constructor(ask: Ask, grants: IamGrants) {
    this.#ask = ask;
    this.grants = grants;
  }

  static async open(ask: Ask): Promise<Roles> {
    return new Roles(ask, await IamGrants.open(tableOf(ask)));
  }

  /** Throws a `StatementFailed` where the role can't log in. */
  async checkLogin(role: string): Promise<void> {
    if (role === 'admin') return;
    const [[canLogin] = []] = await this.#ask(
      `SELECT rolcanlogin FROM pg_roles WHERE rolname = ${quoteText(role)}`,
    );
    if (canLogin === undefined) throw fail('28000', `role "${role}" does not exist`);
    if (canLogin !== 't') throw fail('28000', `role "${role}" is not permitted to log in`);
  }

  /** AWS IAM GRANT and REVOKE by `user`. Throws a `StatementFailed`. */
  async setGrant(user: string, isGrant: boolean, role: string, arn: string): Promise<void> {
    if (user !== 'admin')
      throw fail('42501', `permission denied to ${isGrant ? 'grant' : 'revoke'} role "${role}"`);
    if (!looksLikeIamArn(arn)) throw fail('22023', 'IAM role must look like an IAM ARN');
    const [[exists] = []] = await this.#ask(`SELECT 1 FROM pg_roles WHERE rolname = ${quoteText(role)}`);
    if (exists === undefined) throw fail('42704', `role "${role}" does not exist`);
    await (isGrant ? this.grants.grant(role, arn) : this.grants.revoke(role, arn));
  }
}

/** Grants are a table, so that `sys.iam_pg_role_mappings` shows them and a kept data folder has them. */
function tableOf(ask: Ask): GrantStore {
  return {
    async load() {
      const rows = await ask('SELECT role_name, arn FROM dsql_local.iam_grants');
      return rows.map(([role, arn]) => ({ role: role ?? '', arn: arn ?? '' }));
    },
    async save(grants) {
      const values = grants.map(({ role, arn }) => `(${quoteText(role)}, ${quoteText(arn)}, 'admin')`);
      const insert =
        values.length === 0 ? '' : `INSERT INTO dsql_local.iam_grants VALUES ${values.join(', ')};`;
      await ask(`DELETE FROM dsql_local.iam_grants; ${insert}`);
    },
  };
}
