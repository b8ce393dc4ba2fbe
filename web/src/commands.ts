/** The commands of the palette: places on the page, what can be looked at, what an operator can do. */
import type { SessionAnswer, Snapshot } from '../../src/dashboard/snapshot.ts';
import type { Ask } from './actions.ts';
import type { PaletteItem } from './palette.tsx';
import { changeTheme } from './theme.ts';

interface CommandParts {
  readonly subjects: SessionAnswer['subjects'];
  readonly subject: string;
  readonly snapshot: Snapshot | undefined;
  readonly choose: (subject: string) => void;
  readonly ask: Ask | undefined;
  readonly askSetting: () => void;
  readonly leave: () => void;
}

export function commandsFor(parts: CommandParts): PaletteItem[] {
  return [...actionsOf(parts), ...subjectsOf(parts), ...placesOf(), ...rest(parts)];
}

function actionsOf({ snapshot, ask, askSetting }: CommandParts): PaletteItem[] {
  if (snapshot === undefined || ask === undefined) return [];
  const { actions, state, pausedDatabases } = snapshot.subject;
  const items: PaletteItem[] = [];
  const add = (name: (typeof actions)[number], title: string, run: () => void): void => {
    if (actions.includes(name)) items.push({ title, hint: 'action', run });
  };
  if (state === 'active') add('pause', 'Pause everything', () => ask({ name: 'pause' }));
  else add('resume', 'Resume everything', () => ask({ name: 'resume' }));
  add('reconnect', 'Reconnect all servers', () => ask({ name: 'reconnect' }));
  add('set', 'Set a limit or timeout', askSetting);
  const databases = [...new Set(snapshot.pools.rows.map(({ database }) => database))].filter(Boolean);
  for (const database of databases) {
    if (pausedDatabases.includes(database))
      add('resume', `Resume ${database}`, () => ask({ name: 'resume', database }));
    else add('pause', `Pause ${database}`, () => ask({ name: 'pause', database }));
    add('reconnect', `Reconnect ${database}`, () => ask({ name: 'reconnect', database }));
    add('kill', `Kill ${database}`, () => ask({ name: 'kill', database }));
  }
  add('drain', 'Drain and end', () => ask({ name: 'drain' }));
  return items;
}

function subjectsOf({ subjects, subject, choose }: CommandParts): PaletteItem[] {
  return subjects
    .filter(({ id }) => id !== subject)
    .map(({ id, name, kind }) => ({ title: `Show ${name}`, hint: kind, run: () => choose(id) }));
}

function placesOf(): PaletteItem[] {
  return Array.from(document.querySelectorAll<HTMLElement>('section.card'), (section) => ({
    title: `Go to ${section.querySelector('h2')?.textContent ?? section.id}`,
    hint: 'tile',
    run: () => {
      section.scrollIntoView({ block: 'start' });
      section.focus({ preventScroll: true });
    },
  }));
}

function rest({ leave }: CommandParts): PaletteItem[] {
  return [
    { title: 'Light colours', hint: 'theme', run: () => changeTheme('light') },
    { title: 'Dark colours', hint: 'theme', run: () => changeTheme('dark') },
    { title: 'Colours of the system', hint: 'theme', run: () => changeTheme('system') },
    { title: 'Log out', hint: 'session', run: leave },
  ];
}
