/** The reasons for which Aurora DSQL refuses a login. Its texts have changed more than once, so they are matched in any case of letters. */

const expired = /signature expired|(security )?token( included in the request)? (is|has) expired/i;
const denied = /^(unable to accept connection, )?access denied/i;

/** The token is too old: another one would be let in. The reason is mostly in the hint. */
export function isTokenExpired(message: string, hint = ''): boolean {
  return expired.test(hint) || expired.test(message);
}

/** Neither these credentials nor others of the same identity may log in as this user. */
export function isAccessDenied(message: string, hint = ''): boolean {
  return denied.test(message) && !isTokenExpired(message, hint);
}
