/**
 * The network between one process and the server, as the engine's dialer. It keeps books of its own of what the engine
 * has been told and has asked for, which the engine's counts are compared with.
 */
import type { DialFailureCause } from '../../core/breaker.js';
import type { ConnectionPool } from '../../core/connection-pool.js';
import type { Dial, Dialer } from '../../core/dialer.js';
import type { PooledConnection } from '../../core/pooled-connection.js';
import type { Random } from '../../kernel/random.js';
import type { Laws } from '../laws.js';
import type { DialTrouble } from '../server/dial-trouble.js';
import type { Refusal, Server } from '../server/server.js';
import type { Session, SessionOwner } from '../server/session.js';
import { draw } from '../time/chance.js';
import type { Timeline } from '../time/timeline.js';

/** The process that dials. */
export interface DialingProcess extends SessionOwner {
  readonly pool: ConnectionPool<Session>;
  readonly isGone: boolean;
  /** Runs an action in the process: now, after its pause, or never if the process has ended. */
  deliver(action: () => void): void;
  /** Runs an action in the process after a delay. */
  later(delayMs: number, action: () => void): void;
}

/** One dial, until the engine has its answer. */
interface Attempt {
  readonly dial: Dial<Session>;
  session: Session | undefined;
  /** Given up by the engine; the answer of the server will be ignored. */
  isAbandoned: boolean;
}

/** A credential is fetched, or not, close by. */
const tokenMs = 1;

/** Made once: there may be very many refusals, and their stack traces are not read. */
const errors = {
  noToken: new Error('there is no token'),
  '53400': Object.assign(new Error('too many new connections'), { code: '53400' }),
  '53300': Object.assign(new Error('too many connections'), { code: '53300' }),
  unreachable: new Error('the server does not answer'),
  closed: new Error('the server has closed the connection'),
  abandoned: new Error('the dial was given up'),
};

export class ProcessDialer implements Dialer<Session> {
  readonly #process: DialingProcess;
  readonly #timeline: Timeline;
  readonly #server: Server;
  readonly #random: Random;
  readonly #trouble: DialTrouble;
  readonly #laws: Laws;
  readonly #attempts = new Map<Dial<Session>, Attempt>();
  // The books.
  pending = 0;
  live = 0;
  closing = 0;

  constructor(
    process: DialingProcess,
    timeline: Timeline,
    server: Server,
    random: Random,
    trouble: DialTrouble,
    laws: Laws,
  ) {
    this.#process = process;
    this.#timeline = timeline;
    this.#server = server;
    this.#random = random;
    this.#trouble = trouble;
    this.#laws = laws;
  }

  dial(dial: Dial<Session>): void {
    this.pending++;
    const attempt: Attempt = { dial, session: undefined, isAbandoned: false };
    this.#attempts.set(dial, attempt);
    const { name } = this.#process;
    if (this.#trouble.failsToken(name, this.#random)) {
      this.#answerAfter(tokenMs, attempt, () => this.#fail(attempt, errors.noToken, 'token_provider'));
      return;
    }
    const { plan } = this.#server;
    const dialMs = this.#trouble.slowDialMs(name, this.#random) ?? draw(plan.dial, this.#random);
    const refusalMs = plan.refuse === undefined ? dialMs : draw(plan.refuse, this.#random);
    /** There and back: where a refusal is fast, the rest of a login comes after the server has let it in. */
    const [thereMs, backMs] = [Math.min(dialMs, refusalMs) / 2, refusalMs / 2];
    const getsLost = plan.dialFailures > 0 && this.#random.next() < plan.dialFailures;
    this.#timeline.plan(this.#timeline.now + thereMs, () => {
      // A process that has hung up or crashed does not arrive.
      if (attempt.isAbandoned || this.#process.isGone) return;
      const isThere = (): boolean => !attempt.isAbandoned && !this.#process.isGone;
      const decided = (verdict: Session | Refusal): void => {
        if (typeof verdict !== 'string') attempt.session = verdict;
        const restMs = typeof verdict === 'string' ? backMs : dialMs - thereMs;
        this.#answerAfter(restMs, attempt, () => this.#answer(attempt, verdict));
      };
      if (getsLost) decided('unreachable');
      else this.#server.admit({ owner: this.#process, isThere, decided });
    });
  }

  #answerAfter(delayMs: number, attempt: Attempt, answer: () => void): void {
    this.#timeline.plan(this.#timeline.now + delayMs, () => {
      this.#process.deliver(() => {
        if (!attempt.isAbandoned) answer();
      });
    });
  }

  #answer(attempt: Attempt, verdict: Session | Refusal): void {
    const { pool } = this.#process;
    if (typeof verdict === 'string') {
      if (verdict === '53400') pool.rateExceeded();
      this.#fail(attempt, errors[verdict], verdict === '53400' ? 'rate_limit' : 'connection_open');
    } else if (!verdict.isOnServer) {
      verdict.stage = 'gone';
      this.#fail(attempt, errors.closed, 'connection_open');
    } else {
      this.#attempts.delete(attempt.dial);
      this.pending--;
      this.live++;
      verdict.stage = 'live';
      pool.dialed(attempt.dial, verdict);
    }
  }

  #fail(attempt: Attempt, error: Error, cause: DialFailureCause): void {
    this.#attempts.delete(attempt.dial);
    this.pending--;
    this.#process.pool.dialFailed(attempt.dial, error, cause);
  }

  abandon(dial: Dial<Session>): void {
    const attempt = this.#attempts.get(dial);
    if (attempt === undefined) return;
    attempt.isAbandoned = true;
    this.#attempts.delete(dial);
    this.pending--;
    this.closing++;
    if (attempt.session !== undefined) this.#letGo(attempt.session);
    this.#process.later(0, () => {
      this.closing--;
      this.#process.pool.dialFailed(dial, errors.abandoned);
    });
  }

  close(pooled: PooledConnection<Session>): void {
    const session = pooled.connection;
    this.#checkReason(pooled);
    this.#leaveLive(session);
    session.stage = 'closing';
    this.closing++;
    const answer = (): void => {
      if (session.stage !== 'closing') return;
      session.stage = 'gone';
      this.closing--;
      this.#process.pool.closed(pooled);
    };
    const closeMs = session.isOnServer ? draw(this.#server.plan.close, this.#random) : 0;
    this.#timeline.plan(this.#timeline.now + closeMs, () => {
      session.whenAnswered(() => {
        this.#server.remove(session);
        this.#process.deliver(answer);
      });
    });
  }

  destroy(pooled: PooledConnection<Session>): void {
    const session = pooled.connection;
    this.#checkReason(pooled);
    if (session.stage === 'closing') this.closing--;
    this.#leaveLive(session);
    this.#letGo(session);
  }

  check(pooled: PooledConnection<Session>): void {
    // A question and its answer take as long as a farewell and its answer.
    const session = pooled.connection;
    const answer = (): void => {
      if (session.stage !== 'live') return;
      this.#process.pool.checked(pooled, session.isOnServer ? undefined : errors.closed);
    };
    this.#process.later(draw(this.#server.plan.close, this.#random), () => {
      if (session.isHung) session.whenAnswered(() => this.#process.deliver(answer));
      else this.#process.pool.checked(pooled, session.isOnServer ? undefined : errors.closed);
    });
  }

  #leaveLive(session: Session): void {
    if (session.stage !== 'live') return;
    this.live--;
    if (!session.isOnServer) this.#process.lostSessions--;
  }

  /** Its socket is gone at once; the server finds out a little later. */
  #letGo(session: Session): void {
    session.stage = 'gone';
    if (!session.isOnServer) return;
    this.#process.disownedSessions++;
    this.#server.disowned++;
    const noticedMs = draw(this.#server.plan.close, this.#random);
    this.#timeline.plan(this.#timeline.now + noticedMs, () =>
      session.whenAnswered(() => this.#server.remove(session)),
    );
  }

  #checkReason(pooled: PooledConnection<Session>): void {
    if (pooled.reason === undefined)
      this.#laws.report('reason', this.#process.name, `connection ${pooled.id} is closed without a reason`);
  }
}
