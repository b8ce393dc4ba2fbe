/** Checks a server against `target_session_attrs`. */
import { WrongServerError } from '../errors.js';
import type { Backend } from './backend.js';
import { askServer } from './server-question.js';

export type TargetSession = 'any' | 'read-write' | 'read-only' | 'primary' | 'standby';

const recoveryQuery =
  "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('default_transaction_read_only')";

/** Rejects with a `WrongServerError`. Only servers older than 14 are asked, since newer ones report their state. */
export async function checkTarget(backend: Backend, wanted: TargetSession): Promise<void> {
  if (wanted === 'any') return;
  judge(await stateOf(backend), wanted);
}

/** For replication, which has no queries to ask. Throws a `WrongServerError`, also where the server does not report its state. */
export function checkReportedTarget(backend: Backend, wanted: TargetSession): void {
  if (wanted === 'any') return;
  const state = reportedState(backend);
  if (state === undefined)
    throw new WrongServerError(wanted, 'older than PostgreSQL 14, which reports no state');
  judge(state, wanted);
}

interface ServerState {
  readonly isStandby: boolean;
  readonly isReadOnly: boolean;
}

function judge({ isStandby, isReadOnly }: ServerState, wanted: Exclude<TargetSession, 'any'>): void {
  const is = { 'read-write': !isReadOnly, 'read-only': isReadOnly, primary: !isStandby, standby: isStandby };
  if (is[wanted]) return;
  throw new WrongServerError(wanted, isStandby ? 'a standby' : `a primary${isReadOnly ? ', read-only' : ''}`);
}

function reportedState({ parameters }: Backend): ServerState | undefined {
  const standby = parameters.get('in_hot_standby');
  const readOnly = parameters.get('default_transaction_read_only');
  if (standby === undefined || readOnly === undefined) return undefined;
  return { isStandby: standby === 'on', isReadOnly: standby === 'on' || readOnly === 'on' };
}

async function stateOf(backend: Backend): Promise<ServerState> {
  const reported = reportedState(backend);
  if (reported !== undefined) return reported;
  const [row] = await askServer(backend, { what: 'The check of the server', text: recoveryQuery });
  const isStandby = row?.[0] === 't';
  return { isStandby, isReadOnly: isStandby || row?.[1] === 'on' };
}
