/** The statements that bring a server connection from one client's settings to another's. */
import { settingOf } from '../../sql/settings.js';
import { identity, quotedName, type Settings } from './settings.js';

/** Steps from one set of settings to another. */
export interface Transition {
  /** Resets the session user, the role and other leftovers; empty for nothing. */
  readonly resets: string;
  /** Sets the wanted values; empty for nothing. */
  readonly sets: string;
}

/** Bytes of a transition without its texts. */
const smallest = 512;

/**
 * Clients with different settings that alternate need the same steps again and again. But n clients have n * n transitions, each
 * as long as their settings: at the limit of bytes, all are forgotten.
 */
export class Transitions {
  readonly #mostBytes: number;
  #known = new WeakMap<Settings, WeakMap<Settings, Transition>>();
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** At most, for the limit: transitions of settings that nobody has any more still count. */
  get bytes(): number {
    return this.#bytes;
  }

  find(from: Settings, to: Settings): Transition {
    const known = this.#known.get(from)?.get(to);
    if (known !== undefined) return known;
    const steps = transitionBetween(from.statements, to.statements);
    const bytes = smallest + 2 * (steps.resets.length + steps.sets.length);
    if (this.#bytes + bytes > this.#mostBytes) this.#forgetAll();
    const fromHere = this.#known.get(from) ?? new WeakMap<Settings, Transition>();
    this.#known.set(from, fromHere.set(to, steps));
    this.#bytes += bytes;
    return steps;
  }

  #forgetAll(): void {
    this.#known = new WeakMap();
    this.#bytes = 0;
  }
}

/** Transitions of all pools of the process. */
const transitions = new Transitions(4 * 1_024 * 1_024);

export function transition(from: Settings, to: Settings): Transition {
  return transitions.find(from, to);
}

/** Both steps in one text. */
export function textOf({ resets, sets }: Transition): string {
  return resets === '' || sets === '' ? resets + sets : `${resets}; ${sets}`;
}

/**
 * Identity and role are reset first, so that the login user resets settings that no other role may reset, and are set last, when
 * everything else is set. A change of identity ends the role.
 */
function transitionBetween(from: ReadonlyMap<string, string>, to: ReadonlyMap<string, string>): Transition {
  const isPerson = (name: string): boolean => settingOf(name).isPerson === true;
  const leftovers = [...from.keys()].filter((name) => !to.has(name) && !isPerson(name));
  const changed = [...to].filter(([name, statement]) => from.get(name) !== statement && !isPerson(name));
  const [fromPerson, person, fromRole, role] = [
    from.get(identity),
    to.get(identity),
    from.get('role'),
    to.get('role'),
  ];
  const changesSettings = changed.length > 0 || leftovers.length > 0;
  const leavesPerson = fromPerson !== undefined && (changesSettings || fromPerson !== person);
  const takesPerson = person !== undefined && (leavesPerson || fromPerson === undefined);
  const leavesRole =
    fromRole !== undefined && (leavesPerson || takesPerson || changesSettings || fromRole !== role);
  const takesRole =
    role !== undefined && (leavesRole || takesPerson || leavesPerson || fromRole === undefined);
  const resets = leftovers.map((name) => `RESET ${quotedName(name)}`);
  if (leavesPerson) resets.unshift('RESET SESSION AUTHORIZATION');
  else if (leavesRole) resets.unshift('RESET "role"');
  const sets = changed.map(([, statement]) => statement);
  if (takesPerson) sets.push(person);
  if (takesRole) sets.push(role);
  return { resets: resets.join('; '), sets: sets.join('; ') };
}
