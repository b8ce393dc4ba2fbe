/** The page: who looks, at what, and which of login, waiting and numbers is shown. */
import { useCallback, useEffect, useState } from 'preact/hooks';
import type { SessionAnswer } from '../../src/dashboard/snapshot.ts';
import { logIn, readSession } from './api.ts';
import { Login, takeToken } from './login.tsx';
import { Overview } from './overview.tsx';

type Stage =
  | { readonly kind: 'asking' }
  | { readonly kind: 'out' }
  | { readonly kind: 'in'; readonly session: SessionAnswer };

export function App() {
  const [stage, setStage] = useState<Stage>({ kind: 'asking' });
  const check = useCallback(async () => {
    const session = await readSession().catch(() => 'unknown' as const);
    if (session === 'unknown') return;
    setStage((before) =>
      session === undefined ? { kind: 'out' } : before.kind === 'in' ? before : { kind: 'in', session },
    );
  }, []);
  useEffect(() => {
    const token = takeToken();
    if (token === undefined) void check();
    else logIn(token).then((session) => setStage({ kind: 'in', session }), check);
  }, []);
  if (stage.kind === 'asking') return <p class="visually-hidden">Loading</p>;
  if (stage.kind === 'out') return <Login loggedIn={(session) => setStage({ kind: 'in', session })} />;
  return <Overview session={stage.session} check={check} />;
}
