// The columns of PgBouncer 1.26's SHOW commands, in order, with their types, and behind them those of Headgate's own.
// Names are from its manual (usage, "Show commands"); where the manual is silent about order or type, from what it sends.
import type { ShowName } from '../../../src/pooler/console/command.js';

/** Columns of one type, separated by spaces. */
type Columns = readonly (readonly [
  type: 'text' | 'int4' | 'int8' | 'numeric' | 'decimal' | 'bytea',
  names: string,
])[];

const connection: Columns = [
  ['text', 'type user database replication state addr'],
  ['int4', 'port'],
  ['text', 'local_addr'],
  ['int4', 'local_port'],
  ['text', 'connect_time request_time'],
  ['int4', 'wait wait_us close_needed'],
  ['text', 'ptr link'],
  ['int4', 'remote_pid'],
  ['text', 'tls application_name'],
  ['int4', 'prepared_statements id'],
];

const socket: Columns = [
  ...connection,
  ['int4', 'recv_pos pkt_pos pkt_remain send_pos send_remain pkt_avail send_avail'],
];

export const documentedColumns: Readonly<Record<Exclude<ShowName, 'help'>, Columns>> = {
  stats: [
    ['text', 'database'],
    [
      'numeric',
      'total_server_assignment_count total_client_login_count total_xact_count total_query_count total_received total_sent',
    ],
    ['numeric', 'total_xact_time total_query_time total_wait_time'],
    ['numeric', 'total_client_parse_count total_server_parse_count total_bind_count'],
    [
      'numeric',
      'avg_server_assignment_count avg_client_login_count avg_xact_count avg_query_count avg_recv avg_sent',
    ],
    ['numeric', 'avg_xact_time avg_query_time avg_wait_time'],
    ['numeric', 'avg_client_parse_count avg_server_parse_count avg_bind_count'],
    ['numeric', 'total_session_check_count total_session_pin_count total_swallowed_count'],
    ['numeric', 'total_multiplexed_count total_multiplexed_again_count total_long_wait_count'],
  ],
  stats_totals: [
    ['text', 'database'],
    [
      'numeric',
      'server_assignment_count client_login_count xact_count query_count bytes_received bytes_sent',
    ],
    ['numeric', 'xact_time query_time wait_time client_parse_count server_parse_count bind_count'],
    [
      'numeric',
      'session_check_count session_pin_count swallowed_count multiplexed_count multiplexed_again_count ' +
        'long_wait_count',
    ],
  ],
  stats_averages: [
    ['text', 'database'],
    [
      'numeric',
      'server_assignment_count client_login_count xact_count query_count bytes_received bytes_sent',
    ],
    [
      'numeric',
      'xact_time query_time wait_time avg_client_parse_count avg_server_parse_count avg_bind_count',
    ],
  ],
  totals: [
    ['text', 'name'],
    ['numeric', 'value'],
  ],
  // The last one is Headgate's own.
  servers: [...connection, ['text', 'followers']],
  clients: connection,
  pools: [
    ['text', 'database user'],
    ['int4', 'cl_active cl_waiting cl_active_cancel_req cl_waiting_cancel_req'],
    ['int4', 'sv_active sv_active_cancel sv_being_canceled sv_idle sv_used sv_tested sv_login'],
    ['int4', 'maxwait maxwait_us'],
    ['text', 'pool_mode load_balance_hosts target_session_attrs'],
    // Headgate's own.
    ['text', 'waits_for wait_cause open_failure open_error_code open_error'],
  ],
  peer_pools: [['int4', 'peer_id cl_active_cancel_req cl_waiting_cancel_req sv_active_cancel sv_login']],
  lists: [
    ['text', 'list'],
    ['int4', 'items'],
  ],
  users: [
    ['text', 'name pool_size reserve_pool_size pool_mode'],
    ['int4', 'max_user_connections current_connections'],
    ['int4', 'max_user_client_connections current_client_connections'],
  ],
  databases: [
    ['text', 'name host'],
    ['int4', 'port'],
    ['text', 'database force_user'],
    ['int4', 'pool_size min_pool_size reserve_pool_size server_lifetime'],
    ['text', 'pool_mode load_balance_hosts target_session_attrs'],
    ['int4', 'max_connections current_connections max_client_connections current_client_connections'],
    ['int4', 'paused disabled'],
  ],
  peers: [
    ['int4', 'peer_id'],
    ['text', 'host port'],
    ['int4', 'pool_size'],
  ],
  fds: [
    ['int4', 'fd'],
    ['text', 'task user database addr'],
    ['int4', 'port'],
    ['int8', 'cancel'],
    ['int4', 'link'],
    ['text', 'client_encoding std_strings datestyle timezone password'],
    ['bytea', 'scram_client_key scram_server_key'],
  ],
  sockets: socket,
  active_sockets: socket,
  config: [['text', 'key value default changeable']],
  mem: [
    ['text', 'name'],
    ['int4', 'size used free memtotal'],
  ],
  dns_hosts: [
    ['text', 'hostname'],
    ['int8', 'ttl'],
    ['text', 'addrs'],
  ],
  dns_zones: [
    ['text', 'zonename'],
    ['int8', 'serial'],
    ['int4', 'count'],
  ],
  version: [['text', 'version']],
  state: [['text', 'key value']],

  pins: [
    ['int4', 'client server'],
    ['text', 'database user reason since application_name'],
  ],
  waiting: [
    ['int4', 'client'],
    ['text', 'database user'],
    ['int4', 'wait wait_us'],
    ['text', 'addr'],
    ['int4', 'port'],
    ['text', 'application_name'],
  ],
  query_stats: [
    ['text', 'database user'],
    ['numeric', 'calls errors rows bytes total_time mean_time p99_time max_time wait_time'],
    ['text', 'query'],
  ],
  active_queries: [
    ['text', 'database user state'],
    ['int4', 'client server remote_pid'],
    ['text', 'application_name start_time'],
    ['numeric', 'time wait_time'],
    ['text', 'query'],
  ],
  discards: [
    ['text', 'database user reason'],
    ['int8', 'count'],
  ],
  ledger: [
    ['text', 'database user'],
    ['int4', 'limit pending live closing peak'],
  ],
  shares: [
    ['text', 'budget'],
    ['int4', 'capacity'],
    ['text', 'user'],
    ['decimal', 'weight'],
    ['int4', 'min max demand share held recalled wait_ms'],
  ],
  fleet: [
    ['text', 'server endpoint instance state'],
    ['int4', 'limit active owned held waiting instances waiting_instances'],
    ['int8', 'reclaimed'],
    ['text', 'rate_state'],
    ['numeric', 'rate'],
    ['int8', 'permits postponed denied'],
    ['int4', 'permit_wait_ms call_ms'],
  ],
  rebalances: [
    ['text', 'time budget cause user'],
    ['int4', 'from to demand'],
    ['text', 'reason'],
  ],
  classes: [
    ['text', 'database user class'],
    ['int4', 'part in_use waiting'],
    ['text', 'reason'],
  ],
  workers: [
    ['int4', 'worker pid'],
    ['text', 'state'],
    ['int4', 'clients servers restarts'],
    ['text', 'started'],
    ['int8', 'cpu_ms memory'],
  ],
};

/** `name type`, one for each column. */
export function columnList(columns: Columns): string[] {
  return columns.flatMap(([type, names]) => names.split(' ').map((name) => `${name} ${type}`));
}
