/** The first thing to see: who holds how much of the budget, the hard cap, and what all need. */
import { useMemo, useState } from 'preact/hooks';
import type { CallerCounts } from '../../src/dashboard/observation.ts';
import type { BudgetSection, HistorySample } from '../../src/dashboard/snapshot.ts';
import type { Ask } from './actions.ts';
import { Card, Empty } from './card.tsx';
import { ValueDialog } from './dialogs.tsx';
import { count, ms } from './format.ts';
import { memo } from './memo.tsx';
import { colourNumber } from './series-colours.ts';
import { type ChartData, StackedChart } from './stacked-chart.tsx';

interface BudgetProps {
  /** Undefined for viewers, and where no limit can be set. */
  readonly ask: Ask | undefined;
  readonly budgets: readonly BudgetSection[];
  readonly history: readonly HistorySample[];
  readonly callers: CallerCounts;
}

/** More layers than these can't be told apart. */
const mostLayers = 12;
const others = 'others';

export const BudgetCard = memo((props: BudgetProps) => <Budgets {...props} />);

function Budgets({ budgets, history, callers, ask }: BudgetProps) {
  const [isSizing, setSizing] = useState(false);
  const [wanted, setWanted] = useState<string | undefined>(undefined);
  const budget = budgets.find(({ name }) => name === wanted) ?? budgets[0];
  const choice =
    budgets.length > 1 ? (
      <label class="choice">
        <span class="visually-hidden">Budget</span>
        <select value={budget?.name} onChange={({ currentTarget }) => setWanted(currentTarget.value)}>
          {budgets.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
    ) : (
      <span class="muted">{budget?.name}</span>
    );
  return (
    <Card
      id="budget"
      title="Budget"
      size="whole"
      aside={
        <>
          {choice}
          {ask !== undefined && budget?.name === 'total' && (
            <button type="button" onClick={() => setSizing(true)}>
              Change limit
            </button>
          )}
        </>
      }
    >
      {budget === undefined ? (
        <Empty>
          No limit is known yet. It is asked of the server with its first connection, or set with
          max_server_connections.
        </Empty>
      ) : (
        <BudgetView budget={budget} history={history} callers={callers} />
      )}
      {isSizing && (
        <ValueDialog
          title="Limit of the budget"
          label="Server connections of all users together (max_server_connections)"
          value={budget?.capacity ?? 1}
          least={1}
          chosen={(value) => {
            setSizing(false);
            ask?.({ name: 'set', key: 'max_server_connections', value });
          }}
          closed={() => setSizing(false)}
        />
      )}
    </Card>
  );
}

interface ViewProps extends Pick<BudgetProps, 'history' | 'callers'> {
  readonly budget: BudgetSection;
}

function BudgetView({ budget, history, callers }: ViewProps) {
  const data = useMemo(() => chartData(budget, history), [budget, history]);
  const { held, capacity, exceeded, demand, jain, peak } = budget;
  const { waiting, longest } = waitsFor(budget, callers);
  return (
    <>
      <dl class="keys">
        <Key
          title="Held"
          value={count(held)}
          note={`of ${count(capacity)}`}
          tone={held >= capacity ? 'busy' : undefined}
        />
        <Key title="Demand" value={count(demand)} note="needed at most, of late" />
        <Key
          title="Waiting"
          value={count(waiting)}
          note={waiting > 0 ? `longest ${ms(longest)}` : 'none'}
          tone={waiting > 0 ? 'busy' : undefined}
        />
        <Key
          title="Exceeded"
          value={count(exceeded)}
          note={`most ever ${count(peak)}`}
          tone={exceeded > 0 ? 'bad' : 'good'}
        />
        {budget.parts !== 'states' && (
          <Key title="Jain index" value={jain === null ? '–' : jain.toFixed(2)} note="1 is even" />
        )}
      </dl>
      <StackedChart
        data={data}
        label={`Budget ${budget.name} over the last minutes: ${held} of ${capacity} connections held, ${demand} needed, ${waiting} waiting. The table Shares has the numbers.`}
      />
      <ul class="legend">
        {data.layers.toReversed().map(({ name, colour, values }) => (
          <li key={name}>
            <span class={`dot ${colour}`} />
            {name} <b>{count(values.at(-1) ?? 0)}</b>
          </li>
        ))}
        <li>
          <span class="dot waiting" />
          waiting <b>{count(data.waiting.at(-1) ?? 0)}</b>
        </li>
        <li>
          <span class="line demand" />
          demand <b>{count(demand)}</b>
        </li>
        <li>
          <span class="line cap" />
          hard cap <b>{count(capacity)}</b>
        </li>
      </ul>
    </>
  );
}

function Key({
  title,
  value,
  note,
  tone,
}: {
  readonly title: string;
  readonly value: string;
  readonly note: string;
  readonly tone?: string | undefined;
}) {
  return (
    <div class={`key ${tone ?? ''}`}>
      <dt>{title}</dt>
      <dd>
        <b>{value}</b> <span>{note}</span>
      </dd>
    </div>
  );
}

/** Every caller that waits is one of the budget for all; the other budgets have those who lack nothing else. */
function waitsFor(budget: BudgetSection, callers: CallerCounts): { waiting: number; longest: number } {
  if (budget.name === 'total') return { waiting: callers.waiting, longest: callers.longestWaitMs };
  const waits = budget.users.map(({ waitedMs }) => waitedMs);
  return { waiting: budget.waiting, longest: Math.max(0, ...waits, budget.others?.waitedMs ?? 0) };
}

/** The users that held most at some time, and the rest as one layer. */
function chartData(budget: BudgetSection, history: readonly HistorySample[]): ChartData {
  const samples = history.flatMap(({ at, budgets, waiting }) => {
    const of = budgets[budget.name];
    return of === undefined ? [] : [{ at, ...of, waiting: budget.name === 'total' ? waiting : of.waiting }];
  });
  const most = new Map<string, number>();
  for (const { users } of samples)
    for (const [user, held] of Object.entries(users)) most.set(user, (most.get(user) ?? 0) + held);
  const shown = [...most]
    .sort(([, one], [, other]) => other - one)
    .slice(0, mostLayers)
    .map(([user]) => user)
    .sort();
  const layers = shown.map((name) => ({
    name,
    colour: `series-${colourNumber(name)}`,
    values: samples.map(({ users }) => users[name] ?? 0),
  }));
  const rest = samples.map(({ held }, i) =>
    Math.max(0, held - layers.reduce((sum, { values }) => sum + (values[i] ?? 0), 0)),
  );
  if (rest.some((held) => held > 0)) layers.push({ name: others, colour: 'series-others', values: rest });
  return {
    times: samples.map(({ at }) => at / 1_000),
    layers,
    waiting: samples.map(({ waiting }) => waiting),
    cap: samples.map(({ capacity }) => capacity),
    demand: samples.map(({ demand }) => demand),
  };
}
