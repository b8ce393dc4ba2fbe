/**
 * Views of the messages that clients send all the time. A view is made once and reads any number of
 * messages; it keeps where things are, and makes a string only when asked for one. It is good as long as the bytes are.
 */
import { BodyReader } from './body-reader.js';
import { findZero, int32At, uint16At } from './bytes.js';
import { ProtocolViolationError } from './errors.js';
import { headerBytes, Target } from './message-types.js';

const nothing = Buffer.alloc(0);

/** The position of a message. */
abstract class MessageView {
  source: Buffer = nothing;
  start = 0;
  end = 0;
  /** Size of the whole message: more than from start to end if that is only its first piece. */
  size = 0;

  protected abstract readonly kind: string;

  protected at(source: Buffer, start: number, end: number): number {
    if (start < 0 || end - start < headerBytes || end > source.length)
      throw this.violation('has no complete header');
    this.source = source;
    this.start = start;
    this.end = end;
    this.size = int32At(source, start + 1) + 1;
    if (this.size < end - start)
      throw this.violation(`has a wrong length (bytes announced: ${this.size}, present: ${end - start})`);
    return start + headerBytes;
  }

  /** The end of the text that begins here. */
  protected endOfText(from: number): number {
    const zero = findZero(this.source, from, this.end);
    if (zero === -1) throw this.violation('has a text without an end');
    return zero;
  }

  protected expectEnd(at: number): void {
    if (at !== this.end)
      throw this.violation(
        `has a wrong length (bytes expected: ${at - this.start}, present: ${this.end - this.start})`,
      );
  }

  protected need(bytes: number, at: number): void {
    if (bytes > this.end - at)
      throw this.violation(`is too short (bytes needed: ${bytes}, left: ${this.end - at})`);
  }

  protected violation(what: string): ProtocolViolationError {
    return new ProtocolViolationError(`${this.kind} ${what}.`);
  }
}

/** A message that names a prepared statement, from `nameStart` to `nameEnd` (or a portal, for some of Describe and Close). */
abstract class NamingView extends MessageView {
  nameStart = 0;
  nameEnd = 0;

  /** The unnamed one is meant. */
  get isUnnamed(): boolean {
    return this.nameStart === this.nameEnd;
  }

  /** Different bytes give different keys, whatever their encoding is; for ASCII it is the name itself. */
  nameKey(): string {
    return this.source.toString('latin1', this.nameStart, this.nameEnd);
  }

  name(): string {
    return this.source.toString('utf8', this.nameStart, this.nameEnd);
  }
}

/** Query: a text, and nothing else. */
export class QueryView extends MessageView {
  protected readonly kind = 'Query';
  textStart = 0;
  textEnd = 0;

  read(source: Buffer, start: number, end: number): this {
    this.textStart = this.at(source, start, end);
    this.textEnd = this.endOfText(this.textStart);
    this.expectEnd(this.textEnd + 1);
    return this;
  }

  text(): string {
    return this.source.toString('utf8', this.textStart, this.textEnd);
  }
}

/** Parse: the name of the statement, its text, and the types of its parameters as far as the client knows them. */
export class ParseView extends NamingView {
  protected readonly kind = 'Parse';
  textStart = 0;
  textEnd = 0;
  parameterCount = 0;
  #typesStart = 0;

  /** Reads only the name, where only the first piece is present; the other fields have no meaning then. */
  readName(source: Buffer, start: number, end: number): this {
    this.nameStart = this.at(source, start, end);
    this.nameEnd = this.endOfText(this.nameStart);
    this.textStart = this.textEnd = this.#typesStart = end;
    this.parameterCount = 0;
    return this;
  }

  read(source: Buffer, start: number, end: number): this {
    this.readName(source, start, end);
    this.textStart = this.nameEnd + 1;
    this.textEnd = this.endOfText(this.textStart);
    this.need(2, this.textEnd + 1);
    this.parameterCount = uint16At(source, this.textEnd + 1);
    this.#typesStart = this.textEnd + 3;
    this.expectEnd(this.#typesStart + 4 * this.parameterCount);
    return this;
  }

  text(): string {
    return this.source.toString('utf8', this.textStart, this.textEnd);
  }

  /** The type of a parameter as an OID; 0 leaves it to the server. */
  parameterType(index: number): number {
    if (index < 0 || index >= this.parameterCount) return 0;
    return int32At(this.source, this.#typesStart + 4 * index) >>> 0;
  }

  parameterTypes(): number[] {
    return Array.from({ length: this.parameterCount }, (_, index) => this.parameterType(index));
  }

  /** Two statements have the same key if and only if their texts and their parameter types are the same, byte for byte. */
  statementKey(): string {
    return this.source.toString('latin1', this.textStart, this.end);
  }
}

export interface BindParameters {
  /** 0 text, 1 binary: none for all text, one for all parameters, or one for each. */
  readonly formats: number[];
  readonly values: (Buffer | null)[];
  readonly resultFormats: number[];
}

/** Bind. Reads the two names, which may be all that is there if it is the first piece; the rest only when asked for. */
export class BindView extends NamingView {
  protected readonly kind = 'Bind';
  portalStart = 0;
  portalEnd = 0;

  read(source: Buffer, start: number, end: number): this {
    this.portalStart = this.at(source, start, end);
    this.portalEnd = this.endOfText(this.portalStart);
    this.nameStart = this.portalEnd + 1;
    this.nameEnd = this.endOfText(this.nameStart);
    return this;
  }

  portalKey(): string {
    return this.source.toString('latin1', this.portalStart, this.portalEnd);
  }

  portal(): string {
    return this.source.toString('utf8', this.portalStart, this.portalEnd);
  }

  /** Needs the whole message. */
  parameters(): BindParameters {
    const read = new BodyReader(this.kind, this.source, this.nameEnd + 1, this.end, 0);
    const formats = read.list(read.uint16(), 2, () => read.int16());
    const values = read.list(read.uint16(), 4, () => read.value());
    const resultFormats = read.list(read.uint16(), 2, () => read.int16());
    read.finish();
    return { formats, values, resultFormats };
  }
}

/** Describe or Close, of a statement or of a portal. */
export class TargetView extends NamingView {
  protected readonly kind: 'Describe' | 'Close';
  target: Target = Target.statement;

  constructor(kind: 'Describe' | 'Close') {
    super();
    this.kind = kind;
  }

  get isStatement(): boolean {
    return this.target === Target.statement;
  }

  read(source: Buffer, start: number, end: number): this {
    const body = this.at(source, start, end);
    this.need(1, body);
    const target = source[body] as number;
    if (target !== Target.statement && target !== Target.portal)
      throw this.violation(`is about neither a statement nor a portal: its kind is ${target}`);
    this.target = target;
    this.nameStart = body + 1;
    this.nameEnd = this.endOfText(this.nameStart);
    this.expectEnd(this.nameEnd + 1);
    return this;
  }
}

/** Execute. Its name is that of a portal. */
export class ExecuteView extends NamingView {
  protected readonly kind = 'Execute';
  /** 0: all of them. */
  maxRows = 0;

  read(source: Buffer, start: number, end: number): this {
    this.nameStart = this.at(source, start, end);
    this.nameEnd = this.endOfText(this.nameStart);
    this.need(4, this.nameEnd + 1);
    this.maxRows = int32At(source, this.nameEnd + 1);
    this.expectEnd(this.nameEnd + 5);
    return this;
  }
}
