/** The connections themselves: reservoirs, ages and ends of lives, the rate of opening, pins, and who is at work. */
import type {
  LivesRecord,
  PinsRecord,
  RateRecord,
  ReservoirRecord,
  RunningRecord,
} from '../../src/dashboard/observation.ts';
import { Card, Empty, Table } from './card.tsx';
import { count, ms, perSecond, words } from './format.ts';
import { memo } from './memo.tsx';

export const ReservoirCard = memo(({ reservoirs }: { readonly reservoirs: readonly ReservoirRecord[] }) => (
  <Card id="reservoir" title="Reservoir">
    {reservoirs.map(({ pool, ready, target, lowWatermark, isFilled, foundEmpty }) => (
      <div class="gauge" key={pool}>
        <p class="gauge-value">
          <b>{count(ready)}</b> of {count(target)} ready
        </p>
        <span class={`meter wide ${ready < lowWatermark ? 'busy' : ''}`} aria-hidden="true">
          <span class="meter-fill" style={{ width: share(ready, target) }} />
          <span class="meter-mark" style={{ left: share(lowWatermark, target) }} />
        </span>
        <p class="muted">
          {isFilled ? `watermark ${count(lowWatermark)}` : 'filling for the first time'}; {count(foundEmpty)}{' '}
          found none ready
        </p>
      </div>
    ))}
  </Card>
));

function share(value: number, of: number): string {
  return `${Math.min(100, (100 * value) / Math.max(1, of))}%`;
}

export const LivesCard = memo(({ lives }: { readonly lives: LivesRecord | null }) => (
  <Card
    id="lives"
    title="Ages of connections"
    aside={lives?.nextExpiryMs != null && <span class="muted">next end in {ms(lives.nextExpiryMs)}</span>}
  >
    {lives === null ? (
      <Empty>No connection is open.</Empty>
    ) : (
      <>
        <Bars title="Age" bounds={lives.ageBounds} counts={lives.ages} />
        <Bars title="Time left" bounds={lives.remainingBounds} counts={lives.remaining} />
      </>
    )}
  </Card>
));

interface BarsProps {
  readonly title: string;
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}

function Bars({ title, bounds, counts }: BarsProps) {
  const most = Math.max(1, ...counts);
  const first = counts.findIndex((value) => value > 0);
  if (first === -1) return <p class="muted">{title}: none has an end.</p>;
  const from = Math.max(0, first - 1);
  const to = Math.min(counts.length, Math.max(from + 3, counts.findLastIndex((value) => value > 0) + 2));
  return (
    <table class="bars">
      <caption>{title}</caption>
      <tbody>
        {counts.slice(from, to).map((value, index) => {
          const i = from + index;
          return (
            <tr key={bounds[i] ?? 'longer'}>
              <th scope="row">{i < bounds.length ? `≤ ${ms(bounds[i])}` : `> ${ms(bounds.at(-1))}`}</th>
              <td>
                <span class="bar-row" style={{ width: `${(100 * value) / most}%` }} aria-hidden="true" />
              </td>
              <td class="number">{count(value)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

export const RatesCard = memo(({ rates }: { readonly rates: readonly RateRecord[] }) => (
  <Card id="rates" title="Rate of opening">
    {rates.map(({ server, rate, fullRate, tokens, burst, refused }) => (
      <div class="gauge" key={server}>
        <p class="gauge-value">
          <b>{count(tokens)}</b> of {count(burst)} permits saved
        </p>
        <span class={`meter wide ${tokens < 1 ? 'busy' : ''}`} aria-hidden="true">
          <span class="meter-fill" style={{ width: share(tokens, burst) }} />
        </span>
        <p class="muted">
          {server}: {perSecond(rate)} per second
          {rate < fullRate && ` of ${perSecond(fullRate)}, slowed down`}; refused {count(refused)} times
        </p>
      </div>
    ))}
  </Card>
));

interface PinsProps {
  readonly pins: PinsRecord;
  readonly at: number;
}

export const PinsCard = memo(({ pins, at }: PinsProps) => (
  <Card id="pins" title="Pinned sessions" aside={<span class="muted">{count(pins.count)} now</span>}>
    {pins.count === 0 ? (
      <Empty>No client keeps its server connection beyond a transaction.</Empty>
    ) : (
      <>
        <ul class="chips" aria-label="Pins by reason">
          {Object.entries(pins.byReason).map(([reason, number]) => (
            <li key={reason}>
              {words(reason)} <b>{count(number)}</b>
            </li>
          ))}
        </ul>
        <Table
          label="Pinned sessions"
          heads={[['Client', true], ['User'], ['Database'], ['Why'], ['For', true], ['Application']]}
        >
          {pins.longest.map(({ client, user, database, reason, since, application }) => (
            <tr key={client}>
              <td class="number">{client}</td>
              <th scope="row">{user}</th>
              <td>{database}</td>
              <td>{words(reason)}</td>
              <td class="number">{ms(Math.max(0, at - since))}</td>
              <td class="muted">{application}</td>
            </tr>
          ))}
        </Table>
      </>
    )}
  </Card>
));

interface RunningProps {
  readonly running: readonly RunningRecord[];
  readonly at: number;
}

export const RunningCard = memo(({ running, at }: RunningProps) => (
  <Card id="running" title="At work">
    {running.length === 0 ? (
      <Empty>No connection is in use at this moment.</Empty>
    ) : (
      <Table
        label="At work"
        heads={[['For', true], ['User'], ['Database'], ['Client', true], ['Server', true], ['Statement']]}
      >
        {running.slice(0, 15).map(({ client, user, database, application, server, isIdle, text, since }) => (
          <tr key={client}>
            <td class={`number ${at - since > 30_000 ? 'busy' : ''}`}>{ms(Math.max(0, at - since))}</td>
            <th scope="row">{user}</th>
            <td>{database}</td>
            <td class="number">{client}</td>
            <td class="number">{server ?? ''}</td>
            <td>
              {isIdle && <span class="muted">idle in transaction {application}</span>}
              {!isIdle && text === undefined && <span class="muted">{application}</span>}
              {!isIdle && text !== undefined && <code>{text}</code>}
            </td>
          </tr>
        ))}
      </Table>
    )}
  </Card>
));
