/**
 * Functions of pg_catalog with the prefix `pg_` that leave nothing in the session.
 *
 * A `pg_` function that is not in this table counts as dangerous, so that functions of later PostgreSQL versions do
 * until they are classified. `test/sql/functions-on-server.test.ts` asks a server for functions that are not classified.
 */

/** Volatile functions of PostgreSQL 15 and 18. Snapshots and transaction-level locks end with the transaction. */
const volatileFunctions = [
  'pg_advisory_xact_lock pg_advisory_xact_lock_shared pg_available_wal_summaries pg_blocking_pids',
  'pg_clear_attribute_stats pg_clear_relation_stats pg_collation_actual_version pg_control_checkpoint',
  'pg_control_init pg_control_recovery pg_control_system pg_create_restore_point pg_current_logfile',
  'pg_current_wal_flush_lsn pg_current_wal_insert_lsn pg_current_wal_lsn',
  'pg_database_collation_actual_version pg_database_size pg_export_snapshot pg_get_aios',
  'pg_get_backend_memory_contexts pg_get_loaded_modules pg_get_multixact_members pg_get_sequence_data',
  'pg_get_shmem_allocations pg_get_shmem_allocations_numa pg_get_wait_events pg_get_wal_replay_pause_state',
  'pg_get_wal_resource_managers pg_get_wal_summarizer_state pg_hba_file_rules pg_ident_file_mappings',
  'pg_indexes_size pg_is_in_recovery pg_is_wal_replay_paused pg_isolation_test_session_is_blocked',
  'pg_jit_available pg_last_committed_xact pg_last_wal_receive_lsn pg_last_wal_replay_lsn',
  'pg_last_xact_replay_timestamp pg_lock_status pg_log_backend_memory_contexts pg_log_standby_snapshot',
  'pg_logical_emit_message pg_ls_archive_statusdir pg_ls_dir pg_ls_logdir pg_ls_logicalmapdir',
  'pg_ls_logicalsnapdir pg_ls_replslotdir pg_ls_summariesdir pg_ls_tmpdir pg_ls_waldir pg_nextoid',
  'pg_notification_queue_usage pg_notify pg_partition_ancestors pg_partition_tree pg_prepared_xact',
  'pg_promote pg_read_binary_file pg_read_file pg_read_file_old pg_relation_size pg_reload_conf',
  'pg_restore_attribute_stats pg_restore_relation_stats pg_rotate_logfile pg_rotate_logfile_old',
  'pg_safe_snapshot_blocking_pids pg_sequence_last_value pg_show_all_file_settings',
  'pg_show_replication_origin_status pg_sleep pg_sleep_for pg_sleep_until pg_stat_clear_snapshot',
  'pg_stat_file pg_stat_force_next_flush pg_stat_have_stats pg_stat_reset pg_stat_reset_backend_stats',
  'pg_stat_reset_replication_slot pg_stat_reset_shared pg_stat_reset_single_function_counters',
  'pg_stat_reset_single_table_counters pg_stat_reset_slru pg_stat_reset_subscription_stats pg_switch_wal',
  'pg_table_size pg_tablespace_size pg_total_relation_size pg_try_advisory_xact_lock',
  'pg_try_advisory_xact_lock_shared pg_wal_replay_pause pg_wal_replay_resume pg_wal_summary_contents',
  'pg_xact_commit_timestamp pg_xact_commit_timestamp_origin pg_xact_status',
];

/** Stable and immutable ones. */
const otherFunctions = [
  'pg_available_extension_versions pg_available_extensions pg_backend_pid pg_basetype pg_char_to_encoding',
  'pg_client_encoding pg_collation_for pg_collation_is_visible pg_column_compression',
  'pg_column_is_updatable pg_column_size pg_column_toast_chunk_id pg_conf_load_time pg_config',
  'pg_conversion_is_visible pg_current_snapshot pg_current_xact_id pg_current_xact_id_if_assigned',
  'pg_cursor pg_ddl_command_in pg_ddl_command_out pg_ddl_command_send pg_dependencies_in',
  'pg_dependencies_out pg_dependencies_send pg_describe_object pg_encoding_max_length pg_encoding_to_char',
  'pg_event_trigger_ddl_commands pg_event_trigger_dropped_objects pg_event_trigger_table_rewrite_oid',
  'pg_event_trigger_table_rewrite_reason pg_extension_update_paths pg_filenode_relation',
  'pg_function_is_visible pg_get_acl pg_get_catalog_foreign_keys pg_get_constraintdef pg_get_expr',
  'pg_get_function_arg_default pg_get_function_arguments pg_get_function_identity_arguments',
  'pg_get_function_result pg_get_function_sqlbody pg_get_functiondef pg_get_indexdef pg_get_keywords',
  'pg_get_object_address pg_get_partition_constraintdef pg_get_partkeydef pg_get_publication_tables',
  'pg_get_replica_identity_index pg_get_replication_slots pg_get_ruledef pg_get_serial_sequence',
  'pg_get_statisticsobjdef pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions',
  'pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_has_role pg_identify_object',
  'pg_identify_object_as_address pg_index_column_has_property pg_index_has_property',
  'pg_indexam_has_property pg_indexam_progress_phasename pg_input_error_info pg_input_is_valid',
  'pg_is_other_temp_schema pg_listening_channels pg_lsn pg_lsn_cmp pg_lsn_eq pg_lsn_ge pg_lsn_gt',
  'pg_lsn_hash pg_lsn_hash_extended pg_lsn_in pg_lsn_larger pg_lsn_le pg_lsn_lt pg_lsn_mi pg_lsn_mii',
  'pg_lsn_ne pg_lsn_out pg_lsn_pli pg_lsn_send pg_lsn_smaller pg_mcv_list_in pg_mcv_list_items',
  'pg_mcv_list_out pg_mcv_list_send pg_my_temp_schema pg_ndistinct_in pg_ndistinct_out pg_ndistinct_send',
  'pg_node_tree_in pg_node_tree_out pg_node_tree_send pg_numa_available pg_opclass_is_visible',
  'pg_operator_is_visible pg_opfamily_is_visible pg_options_to_table pg_partition_root',
  'pg_postmaster_start_time pg_prepared_statement pg_relation_filenode pg_relation_filepath',
  'pg_relation_is_publishable pg_relation_is_updatable pg_sequence_parameters pg_settings_get_flags',
  'pg_show_all_settings pg_size_bytes pg_size_pretty pg_snapshot_in pg_snapshot_out pg_snapshot_send',
  'pg_snapshot_xip pg_snapshot_xmax pg_snapshot_xmin pg_split_walfile_name pg_statistics_obj_is_visible',
  'pg_table_is_visible pg_tablespace_databases pg_tablespace_location pg_timezone_abbrevs',
  'pg_timezone_abbrevs_abbrevs pg_timezone_abbrevs_zone pg_timezone_names pg_trigger_depth',
  'pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible',
  'pg_type_is_visible pg_typeof pg_visible_in_snapshot pg_wal_lsn_diff pg_walfile_name',
  'pg_walfile_name_offset',
];

const harmlessFunctions: ReadonlySet<string> = new Set(
  [...volatileFunctions, ...otherFunctions].join(' ').split(' '),
);

/** For a name in lower case. The `pg_stat_get_` functions read counters. */
export function isHarmlessFunctionName(name: string): boolean {
  return harmlessFunctions.has(name) || name.startsWith('pg_stat_get_');
}
