/** All tiles of one pooler or pool, in the order of what people want to know first. */
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import type { SessionAnswer, Snapshot } from '../../src/dashboard/snapshot.ts';
import type { Action } from '../../src/dashboard/source.ts';
import { logOut } from './api.ts';
import { BudgetCard } from './budget-card.tsx';
import { SubjectContext } from './card.tsx';
import { commandsFor } from './commands.ts';
import { LivesCard, PinsCard, RatesCard, ReservoirCard, RunningCard } from './connection-cards.tsx';
import { ConnectionsCard } from './connections-card.tsx';
import { QuestionDialog, SettingDialog } from './dialogs.tsx';
import { AuditCard, ErrorsCard, RebalancesCard } from './events-cards.tsx';
import { FiguresCard } from './figures-card.tsx';
import { FleetCard } from './fleet-card.tsx';
import { type Live, useLive } from './live.ts';
import { Palette } from './palette.tsx';
import { PoolsCard } from './pools-card.tsx';
import { SharesCard } from './shares-card.tsx';
import { StatementsCard } from './statements-card.tsx';
import { TopBar } from './top-bar.tsx';
import { VerdictBanner } from './verdict-banner.tsx';

interface OverviewProps {
  readonly session: SessionAnswer;
  /** Looks whether the session is still there. */
  readonly check: () => void;
}

export function Overview({ session, check }: OverviewProps) {
  const [subject, setSubject] = useState(session.subjects[0]?.id ?? '');
  const [open, setOpen] = useState<'palette' | 'setting' | undefined>(undefined);
  const [action, setAction] = useState<Action | undefined>(undefined);
  const [word, setWord] = useState('');
  const state = useLive(subject, check);
  const snapshot = state.kind === 'live' ? state.live.snapshot : undefined;
  const isOperator = session.role === 'operator';
  const ask = useMemo(() => (isOperator ? setAction : undefined), [isOperator]);
  const leave = useCallback(() => void logOut().then(check, check), [check]);
  useKeys(() => setOpen('palette'));

  // The palette reports that it closed after the command has run, which may have opened something else.
  const closePalette = (): void => setOpen((now) => (now === 'palette' ? undefined : now));
  const commands = commandsFor({
    subjects: session.subjects,
    subject,
    snapshot,
    choose: setSubject,
    ask,
    askSetting: () => setOpen('setting'),
    leave,
  });
  return (
    <>
      <a class="skip" href="#main">
        Skip to the numbers
      </a>
      <TopBar
        session={session}
        subject={subject}
        choose={setSubject}
        state={snapshot?.subject.state}
        version={snapshot?.subject.version}
        isConnected={state.kind === 'live' && state.isConnected}
        isLoading={state.kind === 'loading'}
        stale={snapshot?.subject.stale ?? null}
        openPalette={() => setOpen('palette')}
        leave={leave}
      />
      <main id="main" tabIndex={-1}>
        <h1 class="visually-hidden">Headgate: {snapshot?.subject.name ?? 'loading'}</h1>
        {state.kind === 'loading' ? <Skeleton /> : <Tiles live={state.live} subject={subject} ask={ask} />}
      </main>
      <p class="toast" role="status">
        {word}
      </p>
      {open === 'palette' && <Palette items={commands} closed={closePalette} />}
      {open === 'setting' && (
        <SettingDialog
          chosen={(chosen) => {
            setOpen(undefined);
            setAction(chosen);
          }}
          closed={() => setOpen(undefined)}
        />
      )}
      {action !== undefined && (
        <QuestionDialog
          subject={subject}
          action={action}
          done={(message) => {
            setAction(undefined);
            if (message === undefined) return;
            setWord(message);
            setTimeout(() => setWord(''), 5_000);
          }}
        />
      )}
    </>
  );
}

interface TilesProps {
  readonly live: Live;
  readonly subject: string;
  readonly ask: ((action: Action) => void) | undefined;
}

function Tiles({ live: { snapshot, history }, subject, ask }: TilesProps) {
  const { kind, actions, pausedDatabases } = snapshot.subject;
  const isPooler = kind === 'pooler';
  return (
    <SubjectContext.Provider value={kind}>
      <div class="tiles">
        <VerdictBanner verdict={snapshot.verdict} />
        <BudgetCard
          budgets={snapshot.budgets}
          history={history}
          callers={snapshot.now.callers}
          ask={isPooler && actions.includes('set') ? ask : undefined}
        />
        <FiguresCard now={snapshot.now} history={history} kind={kind} />
        <PoolsCard
          pools={snapshot.pools}
          kind={kind}
          paused={pausedDatabases}
          ask={actions.includes('kill') ? ask : undefined}
        />
        {snapshot.statements !== null && <StatementsCard statements={snapshot.statements} />}
        <div class="columns">
          <div class="column">
            {isPooler && (
              <SharesCard budgets={snapshot.budgets} ask={actions.includes('set_weight') ? ask : undefined} />
            )}
            {snapshot.reservoirs.length > 0 && <ReservoirCard reservoirs={snapshot.reservoirs} />}
            <LivesCard lives={snapshot.lives} />
            {snapshot.rates.length > 0 && <RatesCard rates={snapshot.rates} />}
            {isPooler && <PinsCard pins={snapshot.pins} at={steady(snapshot)} />}
            {(isPooler || snapshot.fleet.length > 0) && (
              <FleetCard fleet={snapshot.fleet} workers={snapshot.workers} at={steady(snapshot)} />
            )}
          </div>
          <div class="column">
            {isPooler && <RebalancesCard rebalances={snapshot.rebalances} />}
            {isPooler && <RunningCard running={snapshot.running} at={snapshot.now.at} />}
            <ErrorsCard errors={snapshot.errors} />
            <AuditCard audit={snapshot.audit} />
          </div>
        </div>
        {isPooler && (
          <ConnectionsCard subject={subject} ask={actions.includes('kill_client') ? ask : undefined} />
        )}
      </div>
    </SubjectContext.Provider>
  );
}

/** A time that moves in steps of five seconds: what hangs on it is not drawn each second. */
function steady({ now: { at } }: Snapshot): number {
  return Math.floor(at / 5_000) * 5_000;
}

function Skeleton() {
  return (
    <div class="tiles" aria-busy="true">
      <p class="visually-hidden" role="status">
        Loading
      </p>
      <div class="card whole skeleton banner" />
      <div class="card whole skeleton hero" />
      <div class="card whole skeleton" />
    </div>
  );
}

/** Ctrl+K or Cmd+K opens the commands, a slash goes to the search. */
function useKeys(openPalette: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLElement && event.target.matches('input, select, textarea');
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        openPalette();
      } else if (event.key === '/' && !isTyping) {
        const search = document.getElementById('search');
        if (search === null) return;
        event.preventDefault();
        search.scrollIntoView({ block: 'center' });
        search.focus();
      }
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
}
