/** Reasons why the pooler refused a client, as metric labels. */
export const loginFailures = [
  'wrong_password',
  /** No rule, no TLS, no certificate, or a console that is not for this user. */
  'not_allowed',
  'too_many_clients',
  'no_database',
  /** The database is disabled, or the login can't be checked at the moment. */
  'not_now',
  'shutting_down',
  'login_timeout',
  /** No server connection could be opened to learn the parameters of a new session. */
  'no_server',
  /** The client has broken the protocol. */
  'protocol',
  'other',
] as const;

export type LoginFailure = (typeof loginFailures)[number];
