/** The figures that tell how it goes: traffic, latency, waits, errors, and the connections by state. */
import type { ConnectionCounts } from '../../src/dashboard/observation.ts';
import type { HistorySample, NowSection } from '../../src/dashboard/snapshot.ts';
import { Card } from './card.tsx';
import { bytes, count, ms, perSecond } from './format.ts';
import { memo } from './memo.tsx';
import { Spark } from './spark.tsx';

interface FiguresProps {
  readonly now: NowSection;
  readonly history: readonly HistorySample[];
  readonly kind: 'pooler' | 'pool';
}

export const FiguresCard = memo(({ now, history, kind }: FiguresProps) => {
  const { callers, query, wait, totals } = now;
  const asked = kind === 'pooler' ? 'Queries' : 'Checkouts';
  return (
    <Card id="figures" title="Now" size="whole" aside={<span class="muted">last 10 s</span>}>
      <div class="figures">
        <Figure
          title={`${asked} per second`}
          value={perSecond(now.queriesPerSecond)}
          note={`${count(totals.queries)} so far`}
          values={history.map(({ queriesPerSecond }) => queriesPerSecond)}
        />
        <Figure
          title={kind === 'pooler' ? 'Query time p99' : 'Use p99'}
          value={ms(query?.p99)}
          note={query === null ? 'none in the last 10 s' : `p50 ${ms(query.p50)}, p95 ${ms(query.p95)}`}
          values={history.map(({ queryP99 }) => queryP99)}
        />
        <Figure
          title="Wait p99"
          value={ms(wait?.p99)}
          note={wait === null ? 'no caller had to wait' : `p50 ${ms(wait.p50)}, p95 ${ms(wait.p95)}`}
          values={history.map(({ waitP99 }) => waitP99)}
          tone={(wait?.p99 ?? 0) > 500 ? 'busy' : ''}
        />
        <Figure
          title="Waiting"
          value={count(callers.waiting)}
          note={
            callers.waiting > 0
              ? `longest ${ms(callers.longestWaitMs)}`
              : kind === 'pooler'
                ? `${count(callers.active + callers.idle)} connected`
                : `${count(callers.active)} in use`
          }
          values={history.map(({ waiting }) => waiting)}
          tone={callers.waiting > 0 ? 'busy' : ''}
        />
        <Figure
          title="Errors per second"
          value={perSecond(now.errorsPerSecond)}
          note={`${count(totals.waitTimeouts)} timed out`}
          tone={now.errorsPerSecond > 0 ? 'bad' : ''}
        />
        {kind === 'pooler' && (
          <Figure
            title="Traffic"
            value={`${bytes(now.sentPerSecond)}/s`}
            note={`${bytes(now.receivedPerSecond)}/s from clients`}
          />
        )}
      </div>
      <Connections connections={now.connections} opened={now.openedPerSecond} />
    </Card>
  );
});

interface FigureProps {
  readonly title: string;
  readonly value: string;
  readonly note: string;
  readonly values?: readonly (number | null)[];
  readonly tone?: string;
}

function Figure({ title, value, note, values, tone = '' }: FigureProps) {
  return (
    <div class={`figure ${tone}`}>
      <span class="figure-title">{title}</span>
      <span class="figure-value">{value}</span>
      <span class="figure-note">{note}</span>
      {values !== undefined && <Spark values={values} tone={tone} />}
    </div>
  );
}

const states = [
  ['active', 'in use'],
  ['idle', 'ready'],
  ['opening', 'opening'],
  ['checking', 'being checked'],
  ['closing', 'closing'],
] as const;

function Connections({
  connections,
  opened,
}: {
  readonly connections: ConnectionCounts;
  readonly opened: number;
}) {
  const total = states.reduce((sum, [state]) => sum + connections[state], 0);
  return (
    <div class="states">
      <div class="bar" aria-hidden="true">
        {states.map(([state]) => (
          <span key={state} class={`state-${state}`} style={{ flexGrow: connections[state] }} />
        ))}
      </div>
      <ul class="legend">
        <li>
          <b>{count(total)}</b> server connections
        </li>
        {states.map(([state, name]) => (
          <li key={state}>
            <span class={`dot state-${state}`} />
            {name} <b>{count(connections[state])}</b>
          </li>
        ))}
        <li class="muted">{perSecond(opened)} opened per second</li>
      </ul>
    </div>
  );
}
