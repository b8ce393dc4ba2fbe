// What an error at connecting means, by what the server and the network say.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { connectError, connectFailureOf } from '../../src/dsql/connect-errors.js';
import type { ConnectFailure } from '../../src/dsql.js';

const said = (code: string, message: string, hint?: string): Error =>
  Object.assign(new Error(message), { severity: 'FATAL', code, hint });
const failed = (message: string, code?: string): Error => Object.assign(new Error(message), { code });

const cases: [ConnectFailure, Error][] = [
  ['too_many_connections', said('53300', 'Unable to accept connection, too many open connections.')],
  ['too_many_connections', said('53300', 'sorry, too many clients already')],
  ['rate_exceeded', said('53400', 'Unable to accept connection, rate exceeded.')],
  ['rate_exceeded', said('53400', 'another text of another year')],
  [
    'token_expired',
    said('08006', 'unable to accept connection, access denied', 'Signature expired: 2026 is now earlier'),
  ],
  ['token_expired', said('28000', 'SIGNATURE EXPIRED')],
  ['token_expired', said('08006', 'access denied', 'The security token included in the request is expired')],
  [
    'not_authorized',
    said('08006', 'unable to accept connection, access denied', 'User: x is not authorized to'),
  ],
  [
    'not_authorized',
    said('08006', 'Unable to accept connection, Access denied', 'Wrong user to action mapping. user: a'),
  ],
  ['not_authorized', said('08006', 'unable to accept connection, access denied')],
  ['not_authorized', said('28000', 'role "x" does not exist')],
  ['not_authorized', said('28P01', 'password authentication failed')],
  ['waking_up', said('08006', 'unable to accept connection, waking up cluster, please retry later')],
  ['waking_up', said('XX000', 'unable to accept connection, waking up cluster')],
  ['no_sni', said('08006', 'unable to accept connection, sni was not received')],
  ['network', said('57P03', 'the database system is starting up')],
  ['network', said('08006', 'something else')],
  ['refused', said('0A000', 'setting configuration parameter "x" not supported')],
  ['network', failed('connect ECONNREFUSED', 'ECONNREFUSED')],
  ['network', failed('getaddrinfo ENOTFOUND x', 'ENOTFOUND')],
  ['network', failed('Connection terminated unexpectedly')],
  ['network', failed('timeout expired')],
  ['tls', failed('self-signed certificate in certificate chain', 'SELF_SIGNED_CERT_IN_CHAIN')],
  ['tls', failed('unable to verify the first certificate', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE')],
  ['tls', failed("Hostname/IP does not match certificate's altnames", 'ERR_TLS_CERT_ALTNAME_INVALID')],
  ['tls', failed('The server does not support SSL connections')],
  ['other', failed('Password must be a string')],
];

test.each(cases.map(([reason, error]) => [reason, error.message, error] as const))(
  'a connect error is %s: %s',
  (reason, _text, error) => {
    expect(connectFailureOf(error)).toBe(reason);
  },
);

test('a connect error keeps the error as it came, and says what to do', () => {
  const cause = said('08006', 'unable to accept connection, access denied', 'Wrong user to action mapping');
  const error = connectError(cause);
  expect(error).toMatchObject({
    code: 'HG_DSQL_CONNECT',
    sqlState: '08006',
    hint: cause['hint' as 'message'],
    cause,
  });
  expect(error.message).toContain('Wrong user to action mapping');
  expect(error.message).toContain(error.advice);
});

test('a connect error reads as sentences', () => {
  const { message } = connectError(said('53400', 'Unable to accept connection, rate exceeded.'));
  expect(message).toMatch(/^rate_exceeded: Unable to accept connection, rate exceeded\. Open connections/);
});

test('a connect error has no SQLSTATE when the server said nothing', () => {
  expect(connectError(failed('connect ECONNREFUSED', 'ECONNREFUSED')).sqlState).toBeUndefined();
});

test('a connect error is made of anything that was thrown', () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true }), (thrown) => {
      expect(connectError(thrown).code).toBe('HG_DSQL_CONNECT');
    }),
  );
});
