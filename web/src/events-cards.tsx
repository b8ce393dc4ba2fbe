/** Cards of events: changes of shares, errors, and actions on this page. */
import type { RebalanceRecord } from '../../src/dashboard/observation.ts';
import type { AuditRecord, ErrorsSection } from '../../src/dashboard/snapshot.ts';
import { Card, Empty, Table } from './card.tsx';
import { clock, count, words } from './format.ts';
import { memo } from './memo.tsx';

export const RebalancesCard = memo(({ rebalances }: { readonly rebalances: readonly RebalanceRecord[] }) => (
  <Card id="rebalances" title="Rebalances">
    {rebalances.length === 0 ? (
      <Empty>No share has changed yet.</Empty>
    ) : (
      <Table label="Rebalances" heads={[['Time'], ['User'], ['Share'], ['Why'], ['Budget']]}>
        {rebalances.map((change, i) => (
          <tr key={`${change.at} ${change.user} ${change.budget} ${i}`}>
            <td class="time">{clock(change.at)}</td>
            <th scope="row">{change.user}</th>
            <td class={change.to > change.from ? 'gain' : 'loss'}>
              <span class="visually-hidden">{change.to > change.from ? 'gained: ' : 'lost: '}</span>
              {count(change.from)} → <b>{count(change.to)}</b>
            </td>
            <td>
              {words(change.reason)}{' '}
              <span class="muted">
                ({words(change.cause)}, needs {count(change.demand)})
              </span>
            </td>
            <td class="muted">{change.budget}</td>
          </tr>
        ))}
      </Table>
    )}
  </Card>
));

export const ErrorsCard = memo(({ errors }: { readonly errors: ErrorsSection }) => {
  // Counters exist from the start, for the metrics.
  const classes = Object.entries(errors.byClass)
    .filter(([, number]) => number > 0)
    .sort(([, one], [, other]) => other - one);
  return (
    <Card id="errors" title="Errors">
      {classes.length > 0 && (
        <ul class="chips" aria-label="Errors that callers were told">
          {classes.slice(0, 12).map(([key, number]) => (
            <li key={key}>
              {nameOf(key)} <b>{count(number)}</b>
            </li>
          ))}
        </ul>
      )}
      {errors.recent.length === 0 ? (
        <Empty>
          {classes.length === 0 ? 'No error so far.' : 'Nothing in the log that needs attention.'}
        </Empty>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what can be scrolled must be reachable by keys.
        <ul class="log" aria-label="Recent warnings and errors" tabIndex={0}>
          {errors.recent.map(({ at, level, message, details, count: times }) => (
            <li key={`${level} ${message} ${details}`}>
              <span class="time">{clock(at)}</span>
              <span class={`tag ${level === 'error' ? 'bad' : 'busy'}`}>{level}</span>
              <span class="message">
                {message}
                {times > 1 && <b> × {count(times)}</b>}
                {details !== '' && <span class="note">{details}</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
});

/** `server 42`: an SQLSTATE class of the server; `pooler query_wait_timeout`: a reason of the pooler's own. */
function nameOf(key: string): string {
  const [by = '', ...rest] = key.split(' ');
  return by === 'server' ? `SQLSTATE ${rest.join(' ')}` : words(rest.join(' '));
}

export const AuditCard = memo(({ audit }: { readonly audit: readonly AuditRecord[] }) => (
  <Card id="audit" title="Logins and actions">
    {audit.length === 0 ? (
      <Empty>Nothing was done on this page yet.</Empty>
    ) : (
      <Table label="Logins and actions" heads={[['Time'], ['Who'], ['From'], ['Action'], ['Outcome']]}>
        {audit.map(({ at, who, from, action, outcome, detail }, i) => (
          <tr key={`${at} ${i}`}>
            <td class="time">{clock(at)}</td>
            <th scope="row">{who}</th>
            <td class="muted">{from}</td>
            <td>{action}</td>
            <td>
              <span class={`tag ${outcome === 'done' ? 'good' : 'bad'}`}>{outcome}</span>{' '}
              {outcome !== 'done' && <span class="muted">{detail}</span>}
            </td>
          </tr>
        ))}
      </Table>
    )}
  </Card>
));
