/** One session: the same thing as its server sees it and as its process sees it, which need not agree at every moment. */
import type { PooledConnection } from '../core/pooled-connection.js';
import type { Linked } from '../kernel/linked-list.js';
import type { Caller } from './caller.js';
import type { ServiceProcess } from './service-process.js';

export class Session implements Linked<Session> {
  readonly process: ServiceProcess;
  readonly acceptedAt: number;
  /** Whether the server has it. */
  isOnServer = true;
  /**
   * The state of the session in its process:
   *
   *     opening --> live --> closing --> gone
   */
  stage: 'opening' | 'live' | 'closing' | 'gone' = 'opening';
  /** From when the pool has it. */
  pooled: PooledConnection<Session> | undefined = undefined;
  /** The caller that has it at present. */
  caller: Caller | undefined = undefined;
  previous: Session | undefined = undefined;
  next: Session | undefined = undefined;

  constructor(process: ServiceProcess, acceptedAt: number) {
    this.process = process;
    this.acceptedAt = acceptedAt;
  }
}
