/** Each user's part of the budget, beside its share and its need. */

import { useState } from 'preact/hooks';
import type { BudgetSection } from '../../src/dashboard/snapshot.ts';
import type { Ask } from './actions.ts';
import { Card, Empty, Table } from './card.tsx';
import { ValueDialog } from './dialogs.tsx';
import { count, ms } from './format.ts';
import { memo } from './memo.tsx';
import { colourNumber } from './series-colours.ts';

interface SharesProps {
  readonly budgets: readonly BudgetSection[];
  /** Undefined for viewers. */
  readonly ask: Ask | undefined;
}

export const SharesCard = memo((props: SharesProps) => <Shares {...props} />);

function Shares({ budgets, ask }: SharesProps) {
  const [weighed, setWeighed] = useState<{ readonly user: string; readonly weight: number } | undefined>(
    undefined,
  );
  const budget = budgets.find(({ parts }) => parts !== 'states');
  return (
    <Card id="shares" title="Shares" aside={<span class="muted">{budget?.name}</span>}>
      {budget === undefined || budget.users.length === 0 ? (
        <Empty>No user has asked for a connection yet.</Empty>
      ) : (
        <Table
          label="Shares"
          heads={[
            ['User'],
            ['Held', true],
            ['Share', true],
            ['Demand', true],
            ['Weight', true],
            ['Asks for', true],
          ]}
        >
          {budget.users.map(({ user, held, share, demand, weight, waitedMs, recalled }) => (
            <tr key={user}>
              <th scope="row">
                <span class={`dot series-${colourNumber(user)}`} />
                {user}
              </th>
              <td class="number">
                <Meter held={held} share={share} capacity={budget.capacity} />
                <b>{count(held)}</b>
                {recalled > 0 && <span class="muted"> −{count(recalled)}</span>}
              </td>
              <td class="number">{count(share)}</td>
              <td class="number">{count(demand)}</td>
              <td class="number">
                {ask === undefined ? (
                  weight
                ) : (
                  <button
                    type="button"
                    aria-label={`Weight of ${user}: ${weight}. Change it`}
                    onClick={() => setWeighed({ user, weight })}
                  >
                    {weight}
                  </button>
                )}
              </td>
              <td class={`number ${waitedMs > 500 ? 'busy' : ''}`}>{waitedMs === 0 ? '' : ms(waitedMs)}</td>
            </tr>
          ))}
          {budget.others !== null && (
            <tr key="others of all">
              <th scope="row">
                <span class="dot series-others" />
                {count(budget.others.count)} others
              </th>
              <td class="number">{count(budget.others.held)}</td>
              <td class="number">{count(budget.others.share)}</td>
              <td class="number">{count(budget.others.demand)}</td>
              <td />
              <td class="number">{budget.others.waitedMs === 0 ? '' : ms(budget.others.waitedMs)}</td>
            </tr>
          )}
        </Table>
      )}
      {weighed !== undefined && (
        <ValueDialog
          title={`Weight of ${weighed.user}`}
          label="Twice the weight is twice the share"
          value={weighed.weight}
          least={0.001}
          chosen={(value) => {
            setWeighed(undefined);
            ask?.({ name: 'set_weight', user: weighed.user, value });
          }}
          closed={() => setWeighed(undefined)}
        />
      )}
    </Card>
  );
}

function Meter({
  held,
  share,
  capacity,
}: {
  readonly held: number;
  readonly share: number;
  readonly capacity: number;
}) {
  const percent = (value: number): string => `${Math.min(100, (100 * value) / Math.max(1, capacity))}%`;
  return (
    <span class="meter" aria-hidden="true">
      <span class="meter-fill" style={{ width: percent(held) }} />
      <span class="meter-mark" style={{ left: percent(share) }} />
    </span>
  );
}
