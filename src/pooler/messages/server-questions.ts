/** Questions about a server that the supervisor has a worker ask, over a connection that the worker has to it. */
import type { ServerNote } from './messages.js';

/** Where a server is. */
export type ServerPlace = Pick<ServerNote, 'host' | 'port' | 'path'>;

/** Connections to look for, by the ports that they have on our side. */
export interface PortsQuestion {
  readonly user: string;
  /** Where the server was reached. */
  readonly address: string;
  readonly port: number;
  /** Our address, as the server has it where nothing is on the way. */
  readonly from: string;
  readonly ports: readonly number[];
}
