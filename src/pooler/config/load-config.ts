/** Loads the configuration of `headgate serve` from its command line, or reports all problems. */
import type { Environment } from '../../kernel/environment.js';
import { ConfigError, type Place, Problems } from './config-problems.js';
import { type OtherVariables, readConfig } from './config-reader.js';
import type { ConfigTree } from './config-tree.js';
import { checkTogether } from './cross-checks.js';
import { type ImportedSetting, importIni } from './pgbouncer-import.js';
import type { PoolerConfig } from './pooler-config.js';
import { configVariable, iniVariable, unknownVariables } from './variables.js';
import { readYamlFile } from './yaml-tree.js';

export interface ConfigRequest {
  /** A YAML or JSON file. */
  readonly configFile?: string | undefined;
  readonly pgbouncerIni?: string | undefined;
  /** By option name, as from `readFlags()`. */
  readonly flags?: ReadonlyMap<string, readonly string[]>;
  readonly environment?: Environment;
  /** Values of variables that are not named after Headgate's options, by option name. */
  readonly otherVariables?: OtherVariables | undefined;
  /** Base folder of relative paths, other than those in a configuration file. Default: the working directory. */
  readonly folder?: string;
  /** False: files that the configuration names need not be on this machine. Default: true. */
  readonly readsFiles?: boolean;
}

export interface LoadedConfig {
  readonly config: PoolerConfig;
  /** Place of each setting, by its path; settings without one have their default. */
  readonly places: ReadonlyMap<string, Place>;
  /** Settings that are valid but unlikely to be meant. */
  readonly warnings: readonly string[];
  /** Outcome of the lines of a pgbouncer.ini; undefined where there is none. */
  readonly imported: readonly ImportedSetting[] | undefined;
}

/** Throws a `ConfigError` that lists all problems. */
export function loadConfig(request: ConfigRequest): LoadedConfig {
  const problems = new Problems();
  const { environment = {}, flags = new Map(), folder = process.cwd(), readsFiles = true } = request;
  const chosen = chooseFile(request, environment, problems);
  const { tree, imported } = readFile(chosen, folder, problems);
  const { otherVariables } = request;
  const reading = readConfig({ flags, environment, otherVariables, tree, folder, readsFiles }, problems);
  const warnings = checkTogether(reading, problems, readsFiles, environment);
  if (problems.list.length > 0) throw new ConfigError(problems.list);
  return { ...reading, imported, warnings: [...unknownVariables(environment), ...warnings] };
}

interface ChosenFile {
  readonly kind: 'yaml' | 'ini' | 'none';
  readonly file: string;
}

/** A flag takes precedence over a variable; two variables are a conflict. */
function chooseFile(request: ConfigRequest, environment: Environment, problems: Problems): ChosenFile {
  if (request.configFile !== undefined) return { kind: 'yaml', file: request.configFile };
  if (request.pgbouncerIni !== undefined) return { kind: 'ini', file: request.pgbouncerIni };
  const yaml = environment[configVariable];
  const ini = environment[iniVariable];
  if (yaml && ini)
    problems.add('', `can't be given together with ${configVariable}`, { source: iniVariable });
  if (yaml) return { kind: 'yaml', file: yaml };
  return ini ? { kind: 'ini', file: ini } : { kind: 'none', file: '' };
}

function readFile(
  { kind, file }: ChosenFile,
  folder: string,
  problems: Problems,
): { tree: ConfigTree | undefined; imported: readonly ImportedSetting[] | undefined } {
  if (kind === 'none') return { tree: undefined, imported: undefined };
  if (kind === 'yaml') {
    const tree = readYamlFile(file, folder, problems);
    // Missing settings are not reported for an unreadable file, since they would hide the reason.
    if (problems.list.length > 0) throw new ConfigError(problems.list);
    return { tree, imported: undefined };
  }
  const { tree, settings } = importIni(file, folder, problems);
  const isUnread = problems.list.some(
    ({ path, place }) => path === '' && place?.source === file && !place.line,
  );
  if (isUnread) throw new ConfigError(problems.list);
  // As PgBouncer, which runs with no file that has a word it does not know.
  for (const { name, why = '', place, isUnknown } of settings)
    if (isUnknown === true) problems.add(name, why, place);
  return { tree, imported: settings };
}
