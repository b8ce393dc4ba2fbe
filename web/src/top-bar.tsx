/** The bar at the top: what is shown, its state, who looks. */
import { useState } from 'preact/hooks';
import type { SubjectState } from '../../src/dashboard/observation.ts';
import type { SessionAnswer } from '../../src/dashboard/snapshot.ts';
import { Mark } from './mark.tsx';
import { memo } from './memo.tsx';
import { changeTheme, savedTheme, type Theme } from './theme.ts';

interface TopBarProps {
  readonly session: SessionAnswer;
  readonly subject: string;
  readonly choose: (subject: string) => void;
  readonly state: SubjectState | undefined;
  readonly version: string | undefined;
  readonly isConnected: boolean;
  readonly isLoading: boolean;
  readonly stale: string | null;
  readonly openPalette: () => void;
  readonly leave: () => void;
}

const keyName = /mac/i.test(navigator.platform) ? '⌘K' : 'Ctrl K';

export const TopBar = memo((props: TopBarProps) => {
  const { session, subject, choose, state, version, openPalette, leave } = props;
  return (
    <header class="top">
      <span class="brand">
        <Mark />
        Headgate <span class="version">{version}</span>
      </span>
      {session.subjects.length > 1 && (
        <label class="choice">
          <span class="visually-hidden">Show</span>
          <select value={subject} onChange={({ currentTarget }) => choose(currentTarget.value)}>
            {session.subjects.map(({ id, name, kind }) => (
              <option key={id} value={id}>
                {kind === 'pooler' ? 'Pooler' : `Pool ${name}`}
              </option>
            ))}
          </select>
        </label>
      )}
      {state !== undefined && <span class={`tag ${state === 'active' ? 'good' : 'bad'}`}>{state}</span>}
      <Connection {...props} />
      <div class="top-end">
        <button type="button" class="palette-button" onClick={openPalette}>
          Commands <kbd>{keyName}</kbd>
        </button>
        <ThemeChoice />
        <span class="role" title={session.who}>
          {session.role}
        </span>
        <button type="button" onClick={leave}>
          Log out
        </button>
      </div>
    </header>
  );
});

function Connection({ isConnected, isLoading, stale }: TopBarProps) {
  const text = isLoading
    ? 'connecting'
    : !isConnected
      ? 'connection lost, trying again'
      : stale === null
        ? 'live'
        : 'numbers are old';
  return (
    <span class={`pulse ${isConnected && stale === null ? 'on' : ''}`} title={stale ?? undefined}>
      <span class="pulse-dot" aria-hidden="true" />
      {text}
    </span>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState(savedTheme());
  return (
    <label class="choice">
      <span class="visually-hidden">Colours</span>
      <select
        value={theme}
        onChange={({ currentTarget }) => {
          const chosen = currentTarget.value as Theme;
          setTheme(chosen);
          changeTheme(chosen);
        }}
      >
        <option value="system">Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}
