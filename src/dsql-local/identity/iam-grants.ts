/** Grants of database roles to IAM identities: AWS IAM GRANT role TO 'arn'. */

export interface IamGrant {
  readonly role: string;
  readonly arn: string;
}

/** Storage that keeps grants between runs. */
export interface GrantStore {
  load(): Promise<readonly IamGrant[]>;
  save(grants: readonly IamGrant[]): Promise<void>;
}

/** The ARNs that a grant can name; DSQL answers `IAM role must look like an IAM ARN` to others. */
const grantablePattern = /^arn:aws[\w-]*:iam::\d{12}:(?:user|role)\/[\w+=,.@/-]+$/;

export function looksLikeIamArn(arn: string): boolean {
  return grantablePattern.test(arn);
}

export class IamGrants {
  readonly #arns = new Map<string, Set<string>>();
  readonly #store: GrantStore | undefined;
  #saving: Promise<void> = Promise.resolve();

  private constructor(store: GrantStore | undefined, grants: readonly IamGrant[]) {
    this.#store = store;
    for (const { role, arn } of grants) this.#add(role, arn);
  }

  /** Without a store, in memory only. */
  static async open(store?: GrantStore): Promise<IamGrants> {
    return new IamGrants(store, (await store?.load()) ?? []);
  }

  /** Resolves when it is saved; false when it was there before. */
  async grant(role: string, arn: string): Promise<boolean> {
    const isNew = this.#add(role, arn);
    if (isNew) await this.#save();
    return isNew;
  }

  /** Resolves when it is saved; false when there was no such grant. */
  async revoke(role: string, arn: string): Promise<boolean> {
    const arns = this.#arns.get(role);
    if (arns?.delete(arn) !== true) return false;
    if (arns.size === 0) this.#arns.delete(role);
    await this.#save();
    return true;
  }

  /** True if the identity, or the role that it assumed, has a grant of the database role. */
  allows(role: string, identityArn: string): boolean {
    const arns = this.#arns.get(role);
    if (arns === undefined) return false;
    const assumed = /^arn:(aws[\w-]*):sts::(\d{12}):assumed-role\/([^/]+)\/[^/]+$/.exec(identityArn);
    if (assumed === null) return arns.has(identityArn);
    const [, partition, account, name] = assumed;
    // The name of a role is unique in its account; only its own ARN has the path before the name.
    const start = `arn:${partition}:iam::${account}:role/`;
    return [...arns].some((arn) => arn.startsWith(start) && arn.slice(arn.lastIndexOf('/') + 1) === name);
  }

  /** A role that has grants can't be dropped. */
  has(role: string): boolean {
    return this.#arns.has(role);
  }

  list(): readonly IamGrant[] {
    return [...this.#arns].flatMap(([role, arns]) => [...arns].map((arn) => ({ role, arn })));
  }

  #add(role: string, arn: string): boolean {
    const arns = this.#arns.get(role) ?? new Set();
    if (arns.has(arn)) return false;
    this.#arns.set(role, arns.add(arn));
    return true;
  }

  /** One after the other, so that the last one saved is the last one made. */
  #save(): Promise<void> {
    const saved = this.#saving.then(() => this.#store?.save(this.list()));
    this.#saving = saved.catch(() => {});
    return saved;
  }
}
