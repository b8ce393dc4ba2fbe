/** Who holds what part of the budget, beside its share and its need. */
import type { BudgetSection } from '../../src/dashboard/snapshot.ts';
import { Card, Empty, Table } from './card.tsx';
import { count, ms } from './format.ts';
import { memo } from './memo.tsx';
import { colourNumber } from './series-colours.ts';

export const SharesCard = memo(({ budgets }: { readonly budgets: readonly BudgetSection[] }) => {
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
            ['Waits', true],
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
              <td class="number">{weight}</td>
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
    </Card>
  );
});

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
