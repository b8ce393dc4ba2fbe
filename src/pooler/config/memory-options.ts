/** Options: limits of memory for one client, one server connection or one pool. */
import { option, type ValuesOf } from './option.js';
import { size } from './special-kinds.js';

const kilobyte = 1_024;
const megabyte = 1_024 * kilobyte;
const most = 2_147_483_647;

export const memoryOptions = {
  maxClientPipelineSize: option(size({ min: 64 * kilobyte, max: most }), 16 * megabyte, {
    name: 'max_client_pipeline_size',
    meaning: 'memory for messages of one client that are not answered; with more, it is not read from',
    reload: 'new-clients',
  }),
  maxClientUnreadSize: option(size({ min: 64 * kilobyte, max: most }), 4 * megabyte, {
    name: 'max_client_unread_size',
    meaning: 'answers that one client has not read; with more, its server is not read from',
    reload: 'new-clients',
  }),
  maxClientStatementsSize: option(size({ min: 64 * kilobyte, max: most }), 32 * megabyte, {
    name: 'max_client_statements_size',
    meaning: 'memory for the named prepared statements of one client; with more, Parse fails with 53400',
    reload: 'new-clients',
  }),
  maxClientSettingsSize: option(size({ min: kilobyte, max: megabyte }), 16 * kilobyte, {
    name: 'max_client_settings_size',
    meaning: 'settings of one session that follow its client; with more, it keeps its server connection',
    reload: 'new-clients',
  }),
  maxPreparedStatementSize: option(size({ min: 16 * kilobyte, max: 64 * megabyte }), megabyte, {
    name: 'max_prepared_statement_size',
    meaning: 'a statement that is prepared under a name; a longer one fails with 54000',
    reload: 'new-clients',
  }),
  maxServerStatementsSize: option(size({ min: 64 * kilobyte, max: most }), 16 * megabyte, {
    name: 'max_server_statements_size',
    meaning:
      'prepared statements kept on one server connection; with more, the one used longest ago is closed',
    reload: 'new-servers',
  }),
  maxServerParametersSize: option(size({ min: 4 * kilobyte, max: 16 * megabyte }), 64 * kilobyte, {
    name: 'max_server_parameters_size',
    meaning: 'settings that one server connection reports; one that reports more is closed',
    reload: 'new-servers',
  }),
  maxPoolStatementsSize: option(size({ min: 64 * kilobyte, max: most }), 8 * megabyte, {
    name: 'max_pool_statements_size',
    meaning: 'statements that a pool remembers and no client has under a name; the oldest are forgotten',
    reload: 'now',
  }),
} as const;

/** In bytes. */
export type MemoryBounds = ValuesOf<typeof memoryOptions>;
