/**
 * Functions that a read may call: built in, without effect on the database or the session, and with the same value in
 * every session with the same settings. Any other function may be user-defined, and may do anything.
 */

const functions = [
  // Aggregates and window functions.
  'any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp cume_dist dense_rank every',
  'first_value json_agg json_object_agg jsonb_agg jsonb_object_agg lag last_value lead max min mode nth_value ntile percent_rank',
  'percentile_cont percentile_disc range_agg rank regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope row_number',
  'stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance',
  // Conditions and numbers.
  'abs acos asin atan atan2 cbrt ceil ceiling coalesce cos degrees div exp factorial floor gcd greatest lcm least ln log log10',
  'mod nullif num_nonnulls num_nulls pi power radians round scale sign sin sqrt tan trim_scale trunc width_bucket',
  // Texts and bytes.
  'ascii bit_length btrim char_length character_length chr concat concat_ws convert_from convert_to decode encode ends_with',
  'format get_bit get_byte initcap left length lower lpad ltrim md5 normalize octet_length overlay parse_ident position',
  'quote_ident quote_literal quote_nullable regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace',
  'regexp_split_to_array regexp_split_to_table regexp_substr repeat replace reverse right rpad rtrim sha224 sha256 sha384 sha512',
  'split_part starts_with string_to_array string_to_table strpos substr substring to_ascii to_hex translate trim upper',
  // Times.
  'age clock_timestamp date_bin date_part date_trunc extract isfinite justify_days justify_hours justify_interval make_date',
  'make_interval make_time make_timestamp make_timestamptz now statement_timestamp to_char to_date to_number to_timestamp',
  'transaction_timestamp',
  // Arrays, ranges and sets.
  'array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions array_prepend',
  'array_remove array_replace array_to_string array_upper cardinality generate_series generate_subscripts isempty lower_inc',
  'lower_inf range_merge trim_array unnest upper_inc upper_inf',
  // JSON.
  'array_to_json json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each',
  'json_each_text json_extract_path json_extract_path_text json_object json_object_keys json_populate_record',
  'json_populate_recordset json_strip_nulls json_to_record json_to_recordset json_typeof jsonb_array_elements',
  'jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text',
  'jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_keys jsonb_path_exists jsonb_path_match',
  'jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_populate_record jsonb_populate_recordset jsonb_pretty',
  'jsonb_set jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof row_to_json to_json to_jsonb',
  // Searching texts.
  'numnode phraseto_tsquery plainto_tsquery setweight strip to_tsquery to_tsvector ts_headline ts_rank ts_rank_cd tsvector_to_array',
  'websearch_to_tsquery',
  // Volatile, and harmless.
  'gen_random_uuid uuidv4 uuidv7',
];

/** Words of the grammar, and types with a size, after which a parenthesis is no call. */
const words = [
  'all and any array as between by case cast char character current_time current_timestamp cross decimal distinct else except exists',
  'filter from full group grouping having in inner intersect interval is join lateral like ilike limit localtime localtimestamp',
  'materialized not numeric nchar offset on or order over partition recursive row rows select sets some similar then time timestamp',
  'timestamptz timetz to union using values varchar varying when where with within cube rollup bit float precision',
];

const readFunctions: ReadonlySet<string> = new Set(functions.join(' ').split(' '));
const grammarWords: ReadonlySet<string> = new Set(words.join(' ').split(' '));

/** For a name in lower case. */
export function isReadFunction(name: string): boolean {
  return readFunctions.has(name);
}

/** For a word in lower case. */
export function mayPrecedeParenthesis(word: string): boolean {
  return grammarWords.has(word);
}
