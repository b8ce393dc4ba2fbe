/** The cost of statements: those that take most of the time, and the slowest. */
import { useState } from 'preact/hooks';
import type { StatementRecord } from '../../src/dashboard/observation.ts';
import { Card, Empty, Table, Toggle } from './card.tsx';
import { count, ms } from './format.ts';
import { memo } from './memo.tsx';

/** Orders of the statements. */
const orders = {
  'Total time': ({ totalMs }: StatementRecord) => totalMs,
  Slowest: ({ longestMs }: StatementRecord) => longestMs,
} as const;
const shownStatements = 25;

export const StatementsCard = memo((props: { readonly statements: readonly StatementRecord[] }) => (
  <Statements {...props} />
));

function Statements({ statements }: { readonly statements: readonly StatementRecord[] }) {
  const [order, setOrder] = useState<keyof typeof orders>('Total time');
  const keyOf = orders[order];
  const sorted = [...statements].sort((one, other) => keyOf(other) - keyOf(one));
  return (
    <Card
      id="statements"
      title="Statements"
      size="whole"
      aside={
        <Toggle
          name="statements"
          legend="Order of statements"
          options={Object.keys(orders) as (keyof typeof orders)[]}
          chosen={order}
          choose={setOrder}
        />
      }
    >
      {statements.length === 0 ? (
        <Empty>No statement has been counted yet.</Empty>
      ) : (
        <Table
          label="Statements"
          heads={[
            ['Statement'],
            ['User'],
            ['Calls', true],
            ['Mean', true],
            ['p99', true],
            ['Longest', true],
            ['Total', true],
            ['Waited', true],
            ['Rows', true],
            ['Errors', true],
          ]}
        >
          {sorted.slice(0, shownStatements).map((one) => (
            <tr key={`${one.user} ${one.database} ${one.text}`}>
              <th scope="row">
                <code>{one.text}</code>
              </th>
              <td>
                {one.user} <span class="muted">{one.database}</span>
              </td>
              <td class="number">{count(one.calls)}</td>
              <td class="number">{ms(one.meanMs)}</td>
              <td class="number">{ms(one.p99Ms)}</td>
              <td class="number">{ms(one.longestMs)}</td>
              <td class="number">{ms(one.totalMs)}</td>
              <td class="number">{ms(one.waitMs)}</td>
              <td class="number">{count(one.rows)}</td>
              <td class={`number ${one.errors > 0 ? 'bad' : ''}`}>{count(one.errors)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  );
}
