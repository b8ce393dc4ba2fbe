/** Questions about a server that a worker answers for the supervisor, over one of its connections to that server. */
import type { ServerNote } from './messages.js';

/** Address of a server. */
export type ServerPlace = Pick<ServerNote, 'host' | 'port' | 'path'>;

/** Connections to look for, by their ports on the pooler's side. */
export interface PortsQuestion {
  readonly user: string;
  /** Address that the server was reached at. */
  readonly address: string;
  readonly port: number;
  /** The pooler's address, as the server sees it if nothing is in between. */
  readonly from: string;
  readonly ports: readonly number[];
}
