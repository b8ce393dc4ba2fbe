/**
 * A table in DynamoDB, over the AWS SDK, which is loaded with the first call: programs that never make a call do not
 * need it.
 *
 * Every reply carries the server's time, in the `Date` header. All processes that share a table therefore agree on the
 * time, whatever their own clocks say.
 */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { withoutContext } from '../../runtime/async-context.js';
import { DynamoPackageMissingError } from './errors.js';
import { expressionsOf, itemOf } from './expressions.js';
import { replyToError } from './failures.js';
import type { Change, Done, GiveUp, Item, ReadReply, Table, WriteReply } from './table.js';

type Sdk = typeof import('@aws-sdk/client-dynamodb');

/** AWS credentials, or where they come from. */
export type DynamoCredentials = NonNullable<ConstructorParameters<typeof DynamoDBClient>[0]>['credentials'];

/** The part of a `DynamoDBClient` that is used. */
export type DynamoClient = Pick<DynamoDBClient, 'send'>;

export interface DynamoTableOptions {
  readonly table: string;
  /** Default: a client made from what AWS's libraries find in the environment. */
  readonly client?: DynamoClient | undefined;
  /** Region of the client that is made. */
  readonly region?: string | undefined;
  /** Another address than AWS's, for the client that is made. */
  readonly endpointUrl?: string | undefined;
  /** Credentials of the client that is made. */
  readonly credentials?: DynamoCredentials | undefined;
}

interface Sending {
  readonly sdk: Sdk;
  readonly client: DynamoClient;
  readonly signal: AbortSignal;
}

/** The outcome of a call, and the server's time. */
interface Sent<T> {
  readonly output: T;
  readonly servedAtMs: number;
}

export class DynamoTable implements Table {
  readonly #options: DynamoTableOptions;
  #ready: Promise<{ sdk: Sdk; client: DynamoClient }> | undefined;

  constructor(options: DynamoTableOptions) {
    this.#options = options;
  }

  read(key: string, answer: (reply: ReadReply<Item | undefined>) => void): GiveUp {
    return this.#call(answer, async ({ sdk, client, signal }) => {
      const command = new sdk.GetItemCommand({ ...this.#at(key), ConsistentRead: true });
      const { output, servedAtMs } = await sent(command, (it) => client.send(it, { abortSignal: signal }));
      return done(itemOf(output.Item), servedAtMs);
    });
  }

  list(prefix: string, answer: (reply: ReadReply<readonly Item[]>) => void): GiveUp {
    return this.#call(answer, async (sending) => {
      const items: Item[] = [];
      let servedAtMs = 0;
      let from: Record<string, unknown> | undefined;
      do {
        const page = await this.#page(prefix, from, sending);
        for (const found of page.output.Items ?? []) items.push(itemOf(found) as Item);
        from = page.output.LastEvaluatedKey;
        servedAtMs = page.servedAtMs;
      } while (from !== undefined);
      return done(items, servedAtMs);
    });
  }

  #page(prefix: string, from: Record<string, unknown> | undefined, { sdk, client, signal }: Sending) {
    const command = new sdk.ScanCommand({
      TableName: this.#options.table,
      ConsistentRead: true,
      FilterExpression: 'begins_with(pk, :prefix)',
      ExpressionAttributeValues: { ':prefix': { S: prefix } },
      ...(from === undefined ? {} : { ExclusiveStartKey: from as Record<string, { S: string }> }),
    });
    return sent(command, (it) => client.send(it, { abortSignal: signal }));
  }

  write(change: Change, answer: (reply: WriteReply) => void): GiveUp {
    return this.#call(answer, async ({ sdk, client, signal }) => {
      const asked = { ...this.#changed(change), ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const };
      if (change.isRemoval) {
        const command = new sdk.DeleteItemCommand(asked);
        const { servedAtMs } = await sent(command, (it) => client.send(it, { abortSignal: signal }));
        return done(undefined, servedAtMs);
      }
      const command = new sdk.UpdateItemCommand({ ...asked, ReturnValues: 'ALL_NEW' });
      const { output, servedAtMs } = await sent(command, (it) => client.send(it, { abortSignal: signal }));
      return done(itemOf(output.Attributes), servedAtMs);
    });
  }

  writeAll(changes: readonly Change[], token: string, answer: (reply: WriteReply) => void): GiveUp {
    const write = async ({ sdk, client, signal }: Sending): Promise<WriteReply> => {
      const command = new sdk.TransactWriteItemsCommand({
        ClientRequestToken: token,
        TransactItems: changes.map((change) => {
          const asked = { ...this.#changed(change), ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const };
          return change.isRemoval ? { Delete: asked } : { Update: { UpdateExpression: '', ...asked } };
        }),
      });
      const { servedAtMs } = await sent(command, (it) => client.send(it, { abortSignal: signal }));
      return done(undefined, servedAtMs);
    };
    return this.#call(answer, write, changes.length);
  }

  #at(key: string): { TableName: string; Key: { pk: { S: string } } } {
    return { TableName: this.#options.table, Key: { pk: { S: key } } };
  }

  #changed(change: Change) {
    return { ...this.#at(change.key), ...expressionsOf(change) };
  }

  /** Makes the call, and has its answer or its error answered: in no caller's async context, since the whole fleet has the use of it. */
  #call<R>(answer: (reply: R) => void, make: (sending: Sending) => Promise<R>, changes = 1): GiveUp {
    const controller = new AbortController();
    const { signal } = controller;
    withoutContext(
      () =>
        this.#load()
          .then(({ sdk, client }) => make({ sdk, client, signal }))
          .catch((thrown: unknown) => replyToError(thrown, changes, dateOf(thrown)) as R)
          .then((reply) => {
            if (!signal.aborted) answer(reply);
          }),
      undefined,
    );
    return () => controller.abort();
  }

  #load(): Promise<{ sdk: Sdk; client: DynamoClient }> {
    // A failure, such as a missing package, is tried again with the next call.
    this.#ready ??= this.#make().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  async #make(): Promise<{ sdk: Sdk; client: DynamoClient }> {
    const sdk = await loadSdk();
    return { sdk, client: this.#options.client ?? makeClient(sdk, this.#options) };
  }
}

function done<T>(value: T, servedAtMs: number): Done<T> {
  return { kind: 'done', value, servedAtMs };
}

export async function loadSdk(): Promise<Sdk> {
  try {
    return await import('@aws-sdk/client-dynamodb');
  } catch (error) {
    throw new DynamoPackageMissingError(error);
  }
}

export function makeClient(
  sdk: Sdk,
  { region, endpointUrl, credentials }: Omit<DynamoTableOptions, 'table' | 'client'>,
): DynamoDBClient {
  return new sdk.DynamoDBClient({
    ...(region === undefined ? {} : { region }),
    ...(endpointUrl === undefined ? {} : { endpoint: endpointUrl }),
    ...(credentials === undefined ? {} : { credentials }),
  });
}

interface Command {
  readonly middlewareStack: {
    add(
      middleware: (next: (args: never) => Promise<unknown>) => (args: never) => Promise<unknown>,
      options: { step: 'deserialize'; name: string },
    ): void;
  };
}

/** Sends a command, and reads the server's time from the answer. */
async function sent<C extends object, T>(command: C, send: (command: C) => Promise<T>): Promise<Sent<T>> {
  let servedAtMs = Date.now();
  const { middlewareStack } = command as unknown as Command;
  middlewareStack.add(
    (next) => async (args) => {
      const answered = await next(args);
      servedAtMs = dateOf({ $response: (answered as { response?: unknown }).response });
      return answered;
    },
    { step: 'deserialize', name: 'headgateServerTime' },
  );
  return { output: await send(command), servedAtMs };
}

/** Falls back to our own clock if something between us and the server has removed the header. */
function dateOf(answered: unknown): number {
  const { headers } = (answered as { $response?: { headers?: Record<string, string> } }).$response ?? {};
  const date = Date.parse(headers?.['date'] ?? '');
  return Number.isNaN(date) ? Math.floor(Date.now() / 1_000) * 1_000 : date;
}
