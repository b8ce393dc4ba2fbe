/** The way in: a password or a token; a token in the address is used at once, and taken out of it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { SessionAnswer } from '../../src/dashboard/snapshot.ts';
import { logIn } from './api.ts';
import { Mark } from './mark.tsx';

interface LoginProps {
  readonly loggedIn: (session: SessionAnswer) => void;
}

/** The token of the address, once. */
export function takeToken(): string | undefined {
  const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? undefined;
  if (token !== undefined) history.replaceState(null, '', location.pathname + location.search);
  return token;
}

export function Login({ loggedIn }: LoginProps) {
  const [secret, setSecret] = useState('');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async (): Promise<void> => {
    setBusy(true);
    setProblem('');
    try {
      loggedIn(await logIn(secret));
    } catch (error) {
      setProblem((error as Error).message);
      setSecret('');
      setBusy(false);
      field.current?.focus();
    }
  };
  return (
    <main class="login">
      <form
        class="login-box"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Mark />
        <h1>Headgate</h1>
        <p class="muted">
          Log in with the password of the page, or with the token that was printed at the start.
        </p>
        <label>
          Password or token
          <input
            ref={field}
            type="password"
            name="secret"
            autocomplete="current-password"
            required
            value={secret}
            aria-describedby="login-problem"
            onInput={({ currentTarget }) => setSecret(currentTarget.value)}
          />
        </label>
        <p class="problem" id="login-problem" role="alert">
          {problem}
        </p>
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'One moment…' : 'Log in'}
        </button>
      </form>
    </main>
  );
}
