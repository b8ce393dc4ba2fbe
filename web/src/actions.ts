/** Texts of the page's actions: the question before each, and its consequences. */
import type { Action } from '../../src/dashboard/source.ts';

/** Asks whether an action is meant, and does it. */
export type Ask = (action: Action) => void;

export interface Question {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly isDangerous: boolean;
}

export function questionFor({ name, database, client, user, key, value }: Action): Question {
  const what = database === undefined ? 'everything' : `database ${database}`;
  switch (name) {
    case 'pause':
      return {
        title: `Pause ${what}?`,
        text: 'Transactions end, server connections are closed, and clients wait until you resume. Their timeouts run on.',
        yes: 'Pause',
        isDangerous: false,
      };
    case 'resume':
      return {
        title: `Resume ${what}?`,
        text: 'Clients that wait go on.',
        yes: 'Resume',
        isDangerous: false,
      };
    case 'reconnect':
      return {
        title: `Reconnect ${what}?`,
        text: 'Each server connection is closed when it is given back, and opened again when it is needed.',
        yes: 'Reconnect',
        isDangerous: false,
      };
    case 'kill':
      return {
        title: `Kill ${what}?`,
        text: 'All clients are disconnected at once, in the middle of their transactions, and the database stays paused.',
        yes: 'Kill',
        isDangerous: true,
      };
    case 'kill_client':
      return {
        title: `Disconnect client ${client}?`,
        text: 'Its transaction is rolled back.',
        yes: 'Disconnect',
        isDangerous: true,
      };
    case 'disable':
      return {
        title: `Refuse new clients of ${what}?`,
        text: 'Clients that are connected stay.',
        yes: 'Refuse',
        isDangerous: false,
      };
    case 'enable':
      return { title: `Accept new clients of ${what}?`, text: '', yes: 'Accept', isDangerous: false };
    case 'drain':
      return {
        title: 'Drain and end?',
        text: 'New clients are refused. The pooler ends when the last transaction is over. This can not be undone.',
        yes: 'Drain',
        isDangerous: true,
      };
    case 'set_weight':
      return {
        title: `Set the weight of ${user} to ${value}?`,
        text: 'Shares change at once: twice the weight is twice the share. It holds until the next reload of the configuration, or the next start.',
        yes: 'Set',
        isDangerous: false,
      };
    case 'set':
      return {
        title: `Set ${key} to ${value}?`,
        text: 'It holds until the next reload of the configuration, or the next start.',
        yes: 'Set',
        isDangerous: false,
      };
  }
}
