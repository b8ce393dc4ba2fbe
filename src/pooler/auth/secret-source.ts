/** Where the secrets of users come from: the user list, a query to the server, or one after the other. */
import type { Secret } from './secret.js';
import type { UserList } from './user-list.js';

export interface SecretSource {
  /** `undefined` for a user that does not exist, or has no password. A rejection: it can't be known now. */
  lookup(user: string): Secret | undefined | Promise<Secret | undefined>;
  /** A login failed with that secret, or for want of one. Another may have taken its place meanwhile. */
  lookupNewer?(user: string, failed: Secret | undefined): Promise<Secret | undefined>;
  /** Whether there is such a user, with a password or without. A rejection: it can't be known now. */
  knows(user: string): boolean | Promise<boolean>;
}

/** The user list first, and for users that are not in it the other source, where there is one. */
export function userListSecrets(users: UserList, others?: SecretSource): SecretSource {
  return {
    lookup: (user) => (users.has(user) ? users.get(user) : others?.lookup(user)),
    lookupNewer: async (user, failed) =>
      users.has(user) ? users.get(user) : others?.lookupNewer?.(user, failed),
    knows: (user) => users.has(user) || (others?.knows(user) ?? false),
  };
}
