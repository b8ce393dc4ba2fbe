// @ts-check
// Reads the counter and the leases straight from DynamoDB Local, and says whether they agree. Knows the items' names, and nothing
// of the program that writes them.

import { setTimeout as wait } from 'node:timers/promises';
import { GetItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';

/**
 * @typedef {object} Audit
 * @property {number} active what the counter says
 * @property {number} sum what the leases add up to
 * @property {boolean} isWhole no slot moved while the leases were read: the two must be the same
 * @property {string[]} instances whose leases there are
 */

/**
 * @param {import('@aws-sdk/client-dynamodb').DynamoDBClient} client
 * @param {string} table
 * @param {string} endpoint
 * @returns {Promise<Audit>}
 */
export async function audit(client, table, endpoint) {
  const before = await counter();
  const leases = await client.send(
    new ScanCommand({
      TableName: table,
      ConsistentRead: true,
      FilterExpression: 'begins_with(pk, :p)',
      ExpressionAttributeValues: { ':p': { S: `dsqllease#${endpoint}#` } },
    }),
  );
  const after = await counter();
  const items = leases.Items ?? [];
  return {
    active: after.active,
    sum: items.reduce((total, item) => total + Number(item['slots']?.N ?? 0), 0),
    isWhole: before.version === after.version,
    instances: items.map((item) => String(item['instance']?.S)),
  };

  async function counter() {
    const { Item } = await client.send(
      new GetItemCommand({
        TableName: table,
        Key: { pk: { S: `dsqllease_counter#${endpoint}` } },
        ConsistentRead: true,
      }),
    );
    return { active: Number(Item?.['active']?.N ?? 0), version: Number(Item?.['version']?.N ?? 0) };
  }
}

/**
 * Until counter and leases agree and no lease is of a process that is gone, or until `withinMs` are over.
 *
 * @param {() => Promise<Audit>} look
 * @param {Set<string>} alive the numbers of the processes that live
 * @param {number} withinMs
 * @returns {Promise<{ agreedMs: number | undefined, settledMs: number | undefined, active: number }>} after how long
 */
export async function settled(look, alive, withinMs) {
  const began = performance.now();
  let agreedMs;
  for (;;) {
    const { active, sum, isWhole, instances } = await look();
    const tookMs = performance.now() - began;
    if (isWhole && active === sum) agreedMs ??= tookMs;
    const isSettled = isWhole && active === sum && instances.every((name) => alive.has(pidOf(name)));
    if (isSettled) return { agreedMs, settledMs: tookMs, active };
    if (tookMs > withinMs) return { agreedMs, settledMs: undefined, active };
    await wait(100);
  }
}

/** @param {string} instance a host and the number of a process */
function pidOf(instance) {
  return instance.split('/').at(-1) ?? '';
}
