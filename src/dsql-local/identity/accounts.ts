/** The AWS identities that exist for the stand-in, and their access keys. */
import { HeadgateError } from '../../kernel/errors.js';

/** The action of a token and of a policy: `DbConnectAdmin` for the user `admin`, `DbConnect` for all others. */
export type ConnectAction = 'DbConnect' | 'DbConnectAdmin';

export interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Session token of temporary credentials, as of an assumed role: tokens signed with them must carry it. */
  readonly sessionToken?: string | undefined;
  /** The end of temporary credentials, and of each token signed with them. */
  readonly expiration?: Date | undefined;
}

export interface IdentityOptions {
  /** `arn:aws:iam::111122223333:user/name`, `arn:aws:sts::111122223333:assumed-role/name/session` */
  readonly arn: string;
  readonly keys: readonly AccessKey[];
  /** Actions that its policies allow. Default: both. */
  readonly actions?: readonly ConnectAction[] | undefined;
}

export interface Identity {
  readonly arn: string;
  readonly actions: ReadonlySet<ConnectAction>;
}

export interface KnownKey {
  readonly identity: Identity;
  readonly key: AccessKey;
}

/** An identity that can't exist. */
export class IdentityOptionsError extends HeadgateError {
  constructor(message: string) {
    super('HG_BAD_IDENTITY', message);
  }
}

const arnPattern =
  /^arn:aws[\w-]*:(?:iam|sts)::(\d{12}):(?:user|role|assumed-role|root|federated-user)(?:\/[\w+=,.@/-]+)?$/;
const keyPattern = /^\w{1,128}$/;

/** The account of an identity; undefined when the text is no ARN of one. */
export function accountOf(arn: string): string | undefined {
  return arnPattern.exec(arn)?.[1];
}

export class Accounts {
  readonly #keys = new Map<string, KnownKey>();

  constructor(identities: readonly IdentityOptions[] = []) {
    for (const identity of identities) this.add(identity);
  }

  /** Throws an `IdentityOptionsError`, and then adds nothing. No message has a secret in it. */
  add({ arn, keys, actions = ['DbConnect', 'DbConnectAdmin'] }: IdentityOptions): Identity {
    if (accountOf(arn) === undefined)
      throw new IdentityOptionsError(
        `"${arn}" is not the ARN of an IAM identity. Write it as arn:aws:iam::111122223333:user/name.`,
      );
    const identity: Identity = { arn, actions: new Set(actions) };
    const ids = keys.map(({ accessKeyId }) => accessKeyId);
    for (const [index, { accessKeyId, secretAccessKey, sessionToken }] of keys.entries()) {
      if (!keyPattern.test(accessKeyId))
        throw new IdentityOptionsError(
          `The access key "${accessKeyId}" of ${arn} is not made of 1 to 128 letters, digits and underscores.`,
        );
      if (secretAccessKey === '' || sessionToken === '')
        throw new IdentityOptionsError(
          `The access key ${accessKeyId} of ${arn} has an empty secret or session token.`,
        );
      if (this.#keys.has(accessKeyId) || ids.indexOf(accessKeyId) !== index)
        throw new IdentityOptionsError(
          `The access key ${accessKeyId} of ${arn} exists already. Give it another id.`,
        );
    }
    for (const key of keys) this.#keys.set(key.accessKeyId, { identity, key });
    return identity;
  }

  remove(accessKeyId: string): boolean {
    return this.#keys.delete(accessKeyId);
  }

  find(accessKeyId: string): KnownKey | undefined {
    return this.#keys.get(accessKeyId);
  }
}
