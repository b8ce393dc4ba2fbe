// pg-cursor comes without types; these are the ones the tests need.
declare module 'pg-cursor' {
  import type { Connection, Submittable } from 'pg';

  // biome-ignore lint/style/noDefaultExport: it is what the package exports
  export default class Cursor<Row = unknown> implements Submittable {
    constructor(text: string, values?: unknown[]);
    submit(connection: Connection): void;
    read(rows: number): Promise<Row[]>;
    read(rows: number, done: (error: Error | null | undefined, rows?: Row[]) => void): void;
    close(): Promise<void>;
    close(done: (error?: Error) => void): void;
  }
}
