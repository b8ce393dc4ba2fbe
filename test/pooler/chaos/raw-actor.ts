// A client that writes bytes: pipelines, COPY, cancels, and messages that are cut short anywhere.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { ErrorFields } from '../../../src/wire/error-fields.js';
import { terminate } from '../../../src/wire/fixed-messages.js';
import { writeCopyData, writeCopyFail, writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { type BackendKey, readBackendKeyData } from '../../../src/wire/session-messages.js';
import { writeCancelRequest, writeStartup } from '../../../src/wire/startup-packet.js';
import type { TestDatabase } from '../../support/postgres.js';
import type { SeededRandom } from '../../support/seeded-random.js';
import { errorOf, RawSession, type Received } from '../../wire/server/raw-session.js';
import { type Book, lineOf, type Transfer, updatesOf } from './bank.js';
import * as segments from './segments.js';
import { differenceOf, type Segment, tagOf } from './segments.js';
import { judge, Lost, newToken, type Part, Refused, type Stage } from './stage.js';

/** Messages that may come at any time. */
const asynchronous: readonly number[] = [Backend.notice, Backend.parameterStatus, Backend.notification];

export class RawActor {
  readonly #stage: Stage;
  readonly #part: Part;
  readonly #random: SeededRandom;
  readonly #book: Book;
  #number = 0;
  #session!: RawSession;
  #key: BackendKey | undefined;
  /** Statements of the present session. */
  #known: string[] = [];
  /** A cancel request was sent, and may hit a later statement of the session. */
  #hasCancelled = false;

  constructor(stage: Stage, part: Part, random: SeededRandom) {
    this.#stage = stage;
    this.#part = part;
    this.#random = random;
    this.#key = undefined;
    this.#book = stage.books.get(part.database) as Book;
  }

  async run(): Promise<void> {
    while (!this.#stage.isOver) {
      try {
        await this.#connect();
        for (let left = 1 + this.#random.below(20); left > 0 && !this.#stage.isOver; left--)
          await this.#act();
        this.#session.socket.end(terminate);
      } catch (error) {
        if (!(error instanceof Lost) && !(error instanceof Refused)) throw error;
        this.#session?.socket.destroy();
        await sleep(this.#random.below(20));
      }
    }
  }

  // ---- the session ------------------------------------------------------------------------------------------------

  async #connect(): Promise<void> {
    const { user, database, id } = this.#part;
    const { host, port } = this.#stage;
    this.#session = await RawSession.open({ host, port } as TestDatabase).catch((error: Error) => {
      throw new Lost(error.message);
    });
    this.#known = [];
    this.#hasCancelled = false;
    const version = this.#random.pick([StartupCode.version30, StartupCode.version30 + 2]);
    const parameters = [
      ['user', user],
      ['database', database],
      ['application_name', `raw ${id}`],
    ] as const;
    writeStartup(this.#session.writer, { version, parameters });
    this.#session.send();
    const messages = await this.#answer('the login', []);
    const key = messages.find(({ type }) => type === Backend.backendKeyData);
    this.#key = key && readBackendKeyData(key.bytes, 0, key.bytes.length);
    this.#stage.saw('login');
  }

  /** All up to ReadyForQuery; throws for an error among it. */
  async #answer(what: string, accepted: readonly string[]): Promise<Received[]> {
    const messages = await this.#until(Backend.readyForQuery, what, accepted);
    const error = errorOf(messages);
    if (error !== undefined) throw this.#judge(error, accepted);
    return messages;
  }

  async #until(type: number, what: string, accepted: readonly string[] = []): Promise<Received[]> {
    const messages: Received[] = [];
    while (messages.at(-1)?.type !== type) {
      const next = this.#session.next().catch((thrown: Error) => {
        // An error of the query, perhaps, and then one that ended it all.
        for (const message of messages) {
          const error = errorOf([message]);
          if (error !== undefined) this.#judge(error, accepted);
        }
        throw new Lost(thrown.message);
      });
      const message = await this.#stage.inTime(this.#part, what, next);
      if (!asynchronous.includes(message.type)) messages.push(message);
      // The awaited message does not come after an error.
      if (message.type === Backend.error && type !== Backend.readyForQuery) return messages;
    }
    return messages;
  }

  #judge(error: ErrorFields, accepted: readonly string[]): Lost | Refused {
    const all = this.#hasCancelled ? [...accepted, '57014'] : accepted;
    return judge(this.#stage, this.#part, error, all);
  }

  #complain(what: string): void {
    this.#stage.complain(this.#part, what);
  }

  #newTransfer(): Transfer {
    return this.#book.open(this.#part.id, ++this.#number, (limit) => this.#random.below(limit));
  }

  // ---- what it does -----------------------------------------------------------------------------------------------

  async #act(): Promise<void> {
    const act = this.#random.below(20);
    if (act < 13) await this.#pipeline();
    else if (act < 16) await this.#copyIn();
    else if (act < 18) await this.#cancel();
    else await this.#readLate();
  }

  #draw(): Segment[] {
    const random = this.#random;
    const token = newToken();
    const draw = random.below(20);
    if (draw < 5) return [segments.transferPipeline(this.#newTransfer(), random)];
    if (draw < 7) return [segments.transferCall(this.#newTransfer())];
    if (draw < 10) return segments.transferTransaction(this.#newTransfer(), random);
    if (draw < 14) return [segments.tokenRead(token, random, this.#known)];
    if (draw < 15) return [segments.portalRead(token, random)];
    if (draw < 16) return [segments.simpleRead(token)];
    if (draw < 17) return [segments.failure(token)];
    if (draw < 18) return [segments.copyOut(token)];
    if (draw < 19) return [segments.longQuery(token)];
    return [random.chance(0.3) ? segments.mixture(token) : segments.emptyQuery()];
  }

  /** Several pieces at once, in as many writes as chance will have it; sometimes not to the end. */
  async #pipeline(): Promise<void> {
    const all: Segment[] = [];
    for (let count = 1 + this.#random.below(6); count > 0; count--) all.push(...this.#draw());
    const writer = new MessageWriter();
    const ends = all.map((segment) => {
      segment.write(writer);
      return writer.length;
    });
    const fate = this.#random.below(30);
    if (fate === 0) writer.append(terminate);
    const bytes = writer.take();
    const isCutShort = fate === 1;
    const length = isCutShort ? this.#random.below(bytes.length) : bytes.length;
    for (const [index, { commits }] of all.entries())
      if (commits !== undefined && (ends[index] as number) <= length) this.#book.sent(commits);
    await this.#write(bytes.subarray(0, length));
    if (fate <= 1) await this.#go();
    for (const segment of all) await this.#check(segment);
  }

  async #write(bytes: Buffer): Promise<void> {
    const { socket } = this.#session;
    let at = 0;
    while (at < bytes.length) {
      const end = this.#random.chance(0.6) ? bytes.length : at + 1 + this.#random.below(bytes.length - at);
      socket.write(bytes.subarray(at, end));
      at = end;
      if (at < bytes.length) await nextTurn();
    }
  }

  /** The client leaves without waiting for answers. */
  async #go(): Promise<never> {
    this.#stage.saw('client destroyed');
    const { socket } = this.#session;
    await nextTurn();
    const way = this.#random.below(3);
    if (way === 0) socket.resetAndDestroy();
    else if (way === 1) socket.destroy();
    else socket.end();
    throw new Lost('it went by itself');
  }

  async #check(segment: Segment): Promise<void> {
    const { commits, accepted = [], errorSays, isCommit, prepares } = segment;
    try {
      const messages = await this.#answer('a pipeline', accepted);
      if (errorSays !== undefined) this.#complain(`no error came for nonsense`);
      const difference = differenceOf(segment, messages);
      if (errorSays === undefined && difference !== undefined) this.#complain(difference);
      if (prepares !== undefined) this.#known.push(prepares);
      if (commits === undefined) return;
      const tag = tagOf(messages);
      if (isCommit === true && tag !== 'COMMIT') this.#book.failed(commits);
      else this.#book.kept(commits);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (errorSays !== undefined && error.code === '22P02' && !error.message.includes(errorSays))
        this.#complain(`got somebody else's error: ${error.message}`);
      if (commits !== undefined) this.#book.failed(commits);
    }
  }

  async #copyIn(): Promise<void> {
    const transfer = this.#newTransfer();
    const { writer } = this.#session;
    const [first, second] = updatesOf(transfer);
    for (const text of ['begin', first, second]) writeQuery(writer, text);
    this.#session.send();
    let isGood = true;
    for (let answers = 0; answers < 3; answers++)
      isGood = (await this.#answer('an update', []).catch(valueOfRefusal)) !== undefined && isGood;
    writeQuery(writer, 'copy public.ledger from stdin');
    this.#session.send();
    const [response] = await this.#until(Backend.copyInResponse, 'COPY');
    if (response?.type === Backend.error) {
      await this.#answer('COPY', []);
      this.#judge(errorOf([response]) as ErrorFields, []);
    } else isGood = (await this.#sendLine(transfer)) && isGood;
    if (isGood) this.#book.sent(transfer);
    writeQuery(writer, 'commit');
    this.#session.send();
    const tag = tagOf((await this.#answer('COMMIT', []).catch(valueOfRefusal)) ?? []);
    if (tag === 'COMMIT' && isGood) this.#book.kept(transfer);
    else this.#book.failed(transfer);
    if (tag === 'COMMIT' && !isGood) this.#complain('a transaction that had failed was committed');
  }

  /** Whether the line went in. */
  async #sendLine(transfer: Transfer): Promise<boolean> {
    const { writer } = this.#session;
    const line = Buffer.from(`${lineOf(transfer).join('\t')}\n`);
    const middle = this.#random.below(line.length);
    writeCopyData(writer, line.subarray(0, middle));
    if (this.#random.chance(0.08)) {
      this.#session.send();
      return this.#go();
    }
    writeCopyData(writer, line.subarray(middle));
    const fails = this.#random.chance(0.1);
    if (fails) writeCopyFail(writer, 'not today');
    else writer.append(Buffer.from([0x63, 0, 0, 0, 4]));
    await this.#write(writer.take());
    return (await this.#answer('COPY', ['57014']).catch(valueOfRefusal)) !== undefined;
  }

  /** A cancel request may be too late, and must not hit another client. */
  async #cancel(): Promise<void> {
    const token = newToken();
    writeQuery(this.#session.writer, `select '${token}' from pg_sleep(${this.#random.below(150) / 1_000})`);
    this.#session.send();
    await sleep(this.#random.below(40));
    const answer = this.#answer('a query that is cancelled', ['57014']).catch(valueOfRefusal);
    answer.catch(() => {});
    this.#hasCancelled = true;
    await this.#stage.inTime(this.#part, 'a cancel', this.#sendCancel());
    const messages = await answer;
    const segment = { types: 'TDC', tokens: [token], write: (): void => {} };
    const difference = messages && differenceOf(segment, messages);
    if (difference !== undefined) this.#complain(difference);
    this.#stage.saw(messages === undefined ? 'cancelled' : 'cancelled too late');
  }

  async #sendCancel(): Promise<void> {
    if (this.#key === undefined) return;
    const { host, port } = this.#stage;
    const socket = connect(port, host);
    socket.on('error', () => {});
    const closed = once(socket, 'close').catch(() => {});
    const writer = new MessageWriter();
    writeCancelRequest(writer, this.#key.processId, this.#key.secretKey);
    socket.end(writer.take());
    socket.resume();
    await closed;
  }

  /** Asks for much, and takes its time to read it. */
  async #readLate(): Promise<void> {
    const segment = segments.largeRead(newToken());
    const { socket, writer } = this.#session;
    socket.pause();
    segment.write(writer);
    this.#session.send();
    await sleep(this.#random.below(60));
    if (this.#random.chance(0.15)) await this.#go();
    socket.resume();
    await this.#check(segment);
  }
}

function valueOfRefusal(error: unknown): undefined {
  if (!(error instanceof Refused)) throw error;
  return undefined;
}
