/** Events of a running migration. */

export type MigrationProgress =
  /** Another runner is at work, and is waited for. */
  | { readonly type: 'waiting'; readonly holder: string }
  /** Files and statements to run, before the first statement. */
  | {
      readonly type: 'plan';
      readonly files: number;
      readonly steps: number;
      readonly server: MigrationServer;
    }
  | {
      readonly type: 'step';
      readonly file: string;
      readonly step: number;
      readonly steps: number;
      readonly line: number;
      readonly summary: string;
    }
  /** The statement is tried again. */
  | { readonly type: 'retry'; readonly file: string; readonly step: number; readonly why: string }
  /** A background job is waited for. */
  | {
      readonly type: 'job';
      readonly file: string;
      readonly step: number;
      readonly jobId: string | undefined;
      readonly status: string;
    }
  /** `found`: the statement had taken effect, and its answer was lost. */
  | {
      readonly type: 'step done';
      readonly file: string;
      readonly step: number;
      readonly outcome: 'ran' | 'found';
      readonly ms: number;
    }
  | { readonly type: 'file done'; readonly file: string; readonly isBaseline: boolean };

/** Recognised by `sys.jobs`. */
export type MigrationServer = 'dsql' | 'postgres';
