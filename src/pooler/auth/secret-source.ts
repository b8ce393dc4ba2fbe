/** Sources of users' secrets: the user list, a query to the server, or one after the other. */
import type { Secret } from './secret.js';
import type { UserList } from './user-list.js';

export interface SecretSource {
  /** `undefined` for a user that does not exist or has no password. Rejects if that is unknown at present. */
  lookup(user: string): Secret | undefined | Promise<Secret | undefined>;
  /** Looks for a newer secret after a login failed with `failed`, or for want of a secret. */
  lookupNewer?(user: string, failed: Secret | undefined): Promise<Secret | undefined>;
  /** True if the user exists, with a password or without. Rejects if that is unknown at present. */
  knows(user: string): boolean | Promise<boolean>;
}

/** The user list first, and another source, if given, for users that are not in it. */
export function userListSecrets(users: UserList, others?: SecretSource): SecretSource {
  return {
    lookup: (user) => (users.has(user) ? users.get(user) : others?.lookup(user)),
    lookupNewer: async (user, failed) =>
      users.has(user) ? users.get(user) : others?.lookupNewer?.(user, failed),
    knows: (user) => users.has(user) || (others?.knows(user) ?? false),
  };
}
