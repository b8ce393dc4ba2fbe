/** Limits of memory that metrics count by name, whenever a client or a server reaches one. */
export const memoryLimits = [
  'max_client_pipeline_size',
  'max_client_statements_size',
  'max_client_settings_size',
  'max_prepared_statement_size',
  'max_server_parameters_size',
] as const;

export type MemoryLimit = (typeof memoryLimits)[number];
