// A login between our own two halves, in memory: the one that lets clients in, and the one that logs in at servers.
import {
  ClientAuthentication,
  type LoginAttempt,
  type LoginStep,
  type LoginTools,
} from '../../../src/pooler/auth/client-authentication.js';
import { ScramKeyCache } from '../../../src/pooler/auth/scram-keys.js';
import { parseSecret, type Secret } from '../../../src/pooler/auth/secret.js';
import {
  ServerAuthentication,
  type ServerCredentials,
  type ServerLogin,
} from '../../../src/pooler/auth/server-authentication.js';
import { UnknownUsers } from '../../../src/pooler/auth/unknown-users.js';
import { authenticationOk } from '../../../src/wire/fixed-messages.js';

export type Outcome = Exclude<LoginStep, { kind: 'ask' }>;

/** A message on its way may become another. */
export type Tamper = (message: Buffer, direction: 'toClient' | 'toServer', number: number) => Buffer;

export interface Conversation {
  readonly outcome: Outcome;
  /** All that the client was sent while it was asked. */
  readonly toClient: readonly Buffer[];
  /** Outcome on the client's side. */
  readonly clientError: unknown;
}

export function tools(secrets: Readonly<Record<string, string>>, some: Partial<LoginTools> = {}): LoginTools {
  const known = new Map<string, Secret>(
    Object.entries(secrets).map(([user, text]) => [user, parseSecret(text)]),
  );
  return {
    secrets: { lookup: (user) => known.get(user), knows: (user) => known.has(user) },
    keys: new ScramKeyCache(),
    unknownUsers: new UnknownUsers({ kind: 'scram', iterations: 16, saltBytes: 16 }),
    ...some,
  };
}

export function attempt(some: Partial<LoginAttempt> = {}): LoginAttempt {
  return {
    user: 'joe',
    database: 'shop',
    method: 'scram-sha-256',
    isUnix: false,
    isEncrypted: true,
    address: '10.1.2.3',
    ...some,
  };
}

export function serverLogin(credentials: ServerCredentials, some: Partial<ServerLogin> = {}): ServerLogin {
  return { user: 'joe', credentials, keys: new ScramKeyCache(), isEncrypted: true, isUnix: false, ...some };
}

/** From the first question to the end. What the client does not answer ends it as well. */
export async function converse(
  here: ClientAuthentication,
  there: ServerAuthentication,
  tamper: Tamper = (message) => message,
): Promise<Conversation> {
  const toClient: Buffer[] = [];
  let number = 0;
  let step = await here.begin();
  while (step.kind === 'ask') {
    const message = tamper(step.messages, 'toClient', number);
    toClient.push(message);
    const answer = tamper(await there.answer(message, 0, message.length), 'toServer', number++);
    step = await here.answer(answer, 0, answer.length);
  }
  const clientError =
    step.kind === 'ok' ? await letIn(there, tamper(step.messages, 'toClient', number)) : undefined;
  return { outcome: step, toClient, clientError };
}

/** The client's error on the messages that let it in, or undefined. */
async function letIn(there: ServerAuthentication, messages: Buffer): Promise<unknown> {
  try {
    if (messages.length > 0) await there.answer(messages, 0, messages.length);
    await there.answer(authenticationOk, 0, authenticationOk.length);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The usual case: a client with a password. */
export function logIn(
  password: string,
  known: LoginTools,
  some: Partial<LoginAttempt> = {},
  tamper?: Tamper,
): Promise<Conversation> {
  const { user, isEncrypted, isUnix } = attempt(some);
  return converse(
    new ClientAuthentication(attempt(some), known),
    new ServerAuthentication(
      serverLogin(
        { kind: 'password', password },
        { user, isEncrypted, isUnix, allowUnencryptedPasswords: true },
      ),
    ),
    tamper,
  );
}
