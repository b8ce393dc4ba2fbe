/** The busiest pools with waits and query times, and what an operator can do about a database. */
import type { PoolsSection } from '../../src/dashboard/snapshot.ts';
import type { ActionName } from '../../src/dashboard/source.ts';
import type { Ask } from './actions.ts';
import { Card, Empty, Table } from './card.tsx';
import { count, ms, perSecond } from './format.ts';
import { memo } from './memo.tsx';

interface PoolsProps {
  readonly pools: PoolsSection;
  readonly kind: 'pooler' | 'pool';
  readonly paused: readonly string[];
  /** Undefined for those who may only look. */
  readonly ask: Ask | undefined;
}

const actionsOf: readonly (readonly [ActionName, string])[] = [
  ['pause', 'Pause'],
  ['resume', 'Resume'],
  ['reconnect', 'Reconnect'],
  ['disable', 'Refuse new clients'],
  ['enable', 'Accept new clients'],
  ['kill', 'Kill'],
];

export const PoolsCard = memo(({ pools, kind, paused, ask }: PoolsProps) => {
  const more = pools.count - pools.rows.length;
  const aside = more > 0 ? <span class="muted">{count(more)} quieter ones not shown</span> : undefined;
  const isPooler = kind === 'pooler';
  return (
    <Card id="pools" title={isPooler ? 'Users and databases' : 'Pool'} size="whole" aside={aside}>
      {pools.rows.length === 0 ? (
        <Empty>No client has logged in yet. Connect with psql to the address that the pooler printed.</Empty>
      ) : (
        <Table
          label="Users and databases"
          heads={[
            [isPooler ? 'User' : 'Pool'],
            ...(isPooler ? [['Database'] as const] : []),
            ['In use', true],
            ['Waiting', true],
            ...(isPooler ? [['Idle clients', true] as const] : []),
            ['Connections', true],
            ['Per second', true],
            ['p50', true],
            ['p95', true],
            ['p99', true],
            ['Wait p99', true],
            ['Errors/s', true],
            ...(isPooler && ask !== undefined ? [['Actions'] as const] : []),
          ]}
        >
          {pools.rows.map((row) => (
            <tr key={`${row.user} ${row.database}`}>
              <th scope="row">
                {row.user}
                {row.isPaused && <span class="tag busy">paused</span>}
                {row.shortage !== null && <span class="note">{row.shortage}</span>}
              </th>
              {isPooler && <td>{row.database}</td>}
              <td class="number">{count(row.active)}</td>
              <td class={`number ${row.waiting > 0 ? 'busy' : ''}`}>{count(row.waiting)}</td>
              {isPooler && <td class="number">{count(row.idle)}</td>}
              <td class="number">
                {count(row.connections)} <span class="muted">/ {count(row.limit)}</span>
              </td>
              <td class="number">{perSecond(row.queriesPerSecond)}</td>
              <td class="number">{ms(row.query?.p50)}</td>
              <td class="number">{ms(row.query?.p95)}</td>
              <td class="number">{ms(row.query?.p99)}</td>
              <td class={`number ${(row.wait?.p99 ?? 0) > 500 ? 'busy' : ''}`}>{ms(row.wait?.p99)}</td>
              <td class={`number ${row.errorsPerSecond > 0 ? 'bad' : ''}`}>
                {perSecond(row.errorsPerSecond)}
              </td>
              {isPooler && ask !== undefined && (
                <td>
                  <select
                    aria-label={`Act on database ${row.database}`}
                    value=""
                    onChange={({ currentTarget }) => {
                      const name = currentTarget.value as ActionName;
                      currentTarget.value = '';
                      ask({ name, database: row.database });
                    }}
                  >
                    <option value="">Act…</option>
                    {actionsOf
                      .filter(([name]) => name !== (paused.includes(row.database) ? 'pause' : 'resume'))
                      .map(([name, title]) => (
                        <option key={name} value={name}>
                          {title} {row.database}
                        </option>
                      ))}
                  </select>
                </td>
              )}
            </tr>
          ))}
        </Table>
      )}
    </Card>
  );
});
