/** Statements that the stand-in answers itself, without PostgreSQL's parser: transactions, jobs, IAM grants, SHOW server_version. */
import { randomBytes } from 'node:crypto';
import type { JudgedStatement } from '../../dialect/judgement.js';
import { writeError, writeNotice } from '../../wire/error-fields.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeCommandComplete, writeDataRow, writeRowDescription } from '../../wire/rows.js';

/** True if PostgreSQL never sees the statement's own Parse, Bind and Execute. */
export function isOwn({ kind, job, iam, ownAnswer }: JudgedStatement): boolean {
  return (
    kind === 'begin' ||
    kind === 'commit' ||
    kind === 'rollback' ||
    job !== undefined ||
    iam !== undefined ||
    ownAnswer !== undefined
  );
}

/** The name of the only column of its result; undefined where it has none. */
export function ownColumn({ job, ownAnswer }: JudgedStatement): string | undefined {
  return job !== undefined ? 'job_id' : ownAnswer?.column;
}

/** A row with one column, described or not, and the command tag. */
export function ownResult(
  column: string | undefined,
  value: string | undefined,
  tag: string,
  isDescribed: boolean,
): Buffer {
  const writer = new MessageWriter();
  if (column !== undefined) {
    if (isDescribed) writeRowDescription(writer, [{ name: column }]);
    writeDataRow(writer, [value ?? null]);
  }
  writeCommandComplete(writer, tag);
  return writer.take();
}

export function errorBytes(fields: Parameters<typeof writeError>[1]): Buffer {
  const writer = new MessageWriter();
  writeError(writer, fields);
  return writer.take();
}

export function warningBytes(code: string, message: string): Buffer {
  const writer = new MessageWriter();
  writeNotice(writer, { severity: 'WARNING', code, message });
  return writer.take();
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** 128 random bits as 26 letters of base32. */
export function newJobId(): string {
  let bits = 0n;
  for (const byte of randomBytes(16)) bits = (bits << 8n) | BigInt(byte);
  bits <<= 2n;
  let id = '';
  for (let shift = 125n; shift >= 0n; shift -= 5n) id += alphabet[Number((bits >> shift) & 31n)];
  return id;
}
