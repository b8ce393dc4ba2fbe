/**
 * The settings of PostgreSQL of which something is known that their name does not tell. The one table behind all that
 * follows a session's settings. Which settings a server reports by itself, it tells when a session begins.
 */

export interface Setting {
  /** In PostgreSQL's notation. */
  readonly name: string;
  /** SQL's own words for it, in lower case: SET TIME ZONE. */
  readonly words?: string;
  /**
   * Decides how a statement is read. `text`: its strings and characters, once. `values`: dates, times and intervals in its strings,
   * once more when the server analyses it again.
   */
  readonly reads?: 'text' | 'values';
  /** No effect on the meaning or plan of a statement: clients with different values share statements. */
  readonly isOutsideOfPlans?: true;
  /** Once a server has accepted a value, every server of the database accepts it. */
  readonly isSure?: true;
  /** Says who the user is: set behind all others and reset before them, by a statement of its own. */
  readonly isPerson?: true;
  /** Ends with its transaction. */
  readonly isOfTransaction?: true;
  /** No server can be returned to the earlier state. */
  readonly isForGood?: true;
  /** PgBouncer always tracks it. */
  readonly isTracked?: true;
  /** Aurora DSQL lets clients set it. It refuses all others, when connecting and with SET. */
  readonly isOnDsql?: true;
}

type Traits = Omit<Setting, 'name'>;

const planner: Traits = { isOnDsql: true };
const outsideOfPlans: Traits = { isSure: true, isOutsideOfPlans: true };

const rows: readonly (readonly [names: string, traits: Traits])[] = [
  ['client_encoding', { words: 'names', reads: 'text', isSure: true, isTracked: true, isOnDsql: true }],
  ['standard_conforming_strings', { reads: 'text', isSure: true, isTracked: true }],
  ['DateStyle IntervalStyle', { reads: 'values', isSure: true, isTracked: true, isOnDsql: true }],
  ['TimeZone', { words: 'time zone', reads: 'values', isSure: true, isTracked: true, isOnDsql: true }],
  ['search_path', { words: 'schema', isSure: true, isTracked: true, isOnDsql: true }],
  ['application_name', { ...outsideOfPlans, isTracked: true, isOnDsql: true }],
  ['extra_float_digits', { ...outsideOfPlans, isOnDsql: true }],
  ['bytea_output client_min_messages lock_timeout statement_timeout transaction_timeout', outsideOfPlans],
  ['idle_in_transaction_session_timeout idle_session_timeout', outsideOfPlans],
  ['session_authorization', { words: 'session authorization', isPerson: true, isTracked: true }],
  ['role', { words: 'role', isPerson: true }],
  ['scram_iterations', { isTracked: true }],
  ['default_transaction_read_only', { isSure: true, isTracked: true }],
  ['default_transaction_isolation default_transaction_deferrable', { isSure: true }],
  ['transaction_isolation transaction_read_only transaction_deferrable', { isOfTransaction: true }],
  ['seed', { isForGood: true }],
  ['enable_bitmapscan enable_hashjoin enable_indexonlyscan enable_indexscan enable_material', planner],
  ['enable_mergejoin enable_nestloop enable_seqscan dsql.enable_batched_nestloop', planner],
  ['disable_sync_create_index', { isOnDsql: true }],
];

/** Only superusers can set and reset these, whole names or beginnings of names. */
const superuserOnly = [
  ...['session_replication_role', 'zero_damaged_pages', 'ignore_checksum', 'lo_compat', 'temp_file_limit'],
  ...['deadlock_timeout', 'max_stack_depth', 'dynamic_library_path', 'commit_delay', 'event_triggers'],
  ...[
    'compute_query_id',
    'backtrace_functions',
    'session_preload',
    'log_',
    'track_',
    'debug_',
    'wal_',
    'allow_',
  ],
  ...['jit_debugging', 'jit_dump', 'jit_profiling', 'auto_explain.', 'pg_stat_statements.'],
];

const settings: readonly Setting[] = rows.flatMap(([names, traits]) =>
  names.split(' ').map((name) => ({ name, ...traits })),
);
const byName: ReadonlyMap<string, Setting> = new Map(
  settings.map((setting) => [setting.name.toLowerCase(), setting]),
);
const byWords: ReadonlyMap<string, string> = new Map(
  settings.flatMap(({ name, words }) => (words === undefined ? [] : [[words, name.toLowerCase()] as const])),
);

/** The table's row for this name in lower case; for an unknown setting, a row with nothing but the name. */
export function settingOf(name: string): Setting {
  return byName.get(name) ?? { name };
}

/** In lower case: PostgreSQL's names of settings have no case. */
export function namesOf(isMeant: (setting: Setting) => boolean): ReadonlySet<string> {
  return new Set(settings.filter(isMeant).map(({ name }) => name.toLowerCase()));
}

/** As servers report them, in the order of the table. */
export function reportedNamesOf(isMeant: (setting: Setting) => boolean): readonly string[] {
  return settings.filter(isMeant).map(({ name }) => name);
}

/** The name in lower case of the setting for which SQL has these words in lower case. */
export function settingOfWords(words: string): string | undefined {
  return byWords.get(words);
}

/** For a name in lower case. */
export function isForSuperusers(name: string): boolean {
  return superuserOnly.some((beginning) => name.startsWith(beginning));
}
