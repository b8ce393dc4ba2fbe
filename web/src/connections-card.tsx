/** All clients and servers, searched and cut into pages by the server. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ListAnswer } from '../../src/dashboard/source.ts';
import type { Ask } from './actions.ts';
import { list } from './api.ts';
import { Card, Empty, Table, Toggle } from './card.tsx';
import { ago, count, ms } from './format.ts';
import { memo } from './memo.tsx';

interface ConnectionsProps {
  readonly subject: string;
  readonly ask: Ask | undefined;
}

const rows = 25;
/** Short lists are read again often, long ones seldom. */
const refreshMs = (total: number): number => (total < 1_000 ? 2_000 : 10_000);

export const ConnectionsCard = memo((props: ConnectionsProps) => <Connections {...props} />);

function Connections({ subject, ask }: ConnectionsProps) {
  const [what, setWhat] = useState<'clients' | 'servers'>('clients');
  const [search, setSearch] = useState('');
  const [offset, setOffset] = useState(0);
  const [answer, setAnswer] = useState<ListAnswer | undefined>(undefined);
  const [problem, setProblem] = useState('');
  const total = useRef(0);

  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout>;
    const read = async (): Promise<void> => {
      if (!document.hidden) {
        try {
          const came = await list(subject, { what, search, offset, limit: rows });
          if (isOver) return;
          total.current = came.total;
          setAnswer(came);
          setProblem('');
        } catch (error) {
          if (isOver) return;
          setProblem((error as Error).message);
        }
      }
      timer = setTimeout(read, refreshMs(total.current));
    };
    // Not with every letter that is typed.
    timer = setTimeout(read, search === '' ? 0 : 200);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [subject, what, search, offset]);

  const choose = (next: 'clients' | 'servers'): void => {
    setWhat(next);
    setOffset(0);
    setAnswer(undefined);
  };
  const matching = answer?.matching ?? 0;
  return (
    <Card
      id="connections"
      title="Clients and servers"
      size="whole"
      aside={
        <div class="list-tools">
          <Toggle
            name="list"
            legend="Which list"
            options={['Clients', 'Servers']}
            chosen={what === 'clients' ? 'Clients' : 'Servers'}
            choose={(option) => choose(option === 'Clients' ? 'clients' : 'servers')}
          />
          <input
            id="search"
            type="search"
            placeholder="Search (press /)"
            aria-label="Search clients and servers"
            value={search}
            onInput={({ currentTarget }) => {
              setSearch(currentTarget.value);
              setOffset(0);
            }}
          />
        </div>
      }
    >
      {problem !== '' && <p class="problem">{problem}</p>}
      {answer === undefined ? (
        <div class="skeleton-rows" aria-hidden="true" />
      ) : answer.rows.length === 0 ? (
        <Empty>
          {search === '' ? `There are no ${what} at the moment.` : `No ${what} match "${search}".`}
        </Empty>
      ) : (
        <Rows answer={answer} ask={what === 'clients' ? ask : undefined} what={what} />
      )}
      <nav class="pager" aria-label={`Pages of ${what}`}>
        <span class="muted">
          {count(Math.min(offset + 1, matching))}–{count(Math.min(offset + rows, matching))} of{' '}
          {count(matching)}
          {answer !== undefined && answer.matching !== answer.total && ` (${count(answer.total)} in all)`}
        </span>
        <button type="button" disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - rows))}>
          Previous
        </button>
        <button type="button" disabled={offset + rows >= matching} onClick={() => setOffset(offset + rows)}>
          Next
        </button>
      </nav>
    </Card>
  );
}

interface RowsProps {
  readonly answer: ListAnswer;
  readonly ask: Ask | undefined;
  readonly what: string;
}

function Rows({ answer: { columns, rows: all }, ask, what }: RowsProps) {
  const now = Date.now();
  const heads = columns.map(({ title, kind }) => [title, kind === 'number' || kind === 'ms'] as const);
  return (
    <Table label={what} heads={ask === undefined ? heads : [...heads, ['Action']]}>
      {all.map((row) => (
        <tr key={row[0]}>
          {columns.map(({ name, kind }, i) => (
            <td key={name} class={kind === 'number' || kind === 'ms' ? 'number' : undefined}>
              {cell(row[i] ?? null, kind, now)}
            </td>
          ))}
          {ask !== undefined && (
            <td>
              <button
                type="button"
                class="small"
                aria-label={`Disconnect client ${row[0]}`}
                onClick={() => ask({ name: 'kill_client', client: Number(row[0]) })}
              >
                Disconnect
              </button>
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

function cell(value: string | number | null, kind: string, now: number): string {
  if (value === null || (kind === 'ms' && value === 0)) return '';
  if (kind === 'ms') return ms(Number(value));
  if (kind === 'time') return ago(Number(value), now);
  return String(value);
}
