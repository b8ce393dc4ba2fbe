/** TLS contexts for clients and servers, made from the configured files, and made again when those change. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DEFAULT_CIPHERS } from 'node:tls';
import type { DialTls } from '../../../net/connect-transport.js';
import { TlsContext, type TlsMaterial, type TlsRole } from '../../../net/tls-context.js';
import { tlsServerEndPoint } from '../../auth/channel-binding.js';
import type { GeneralConfig } from '../../config/pooler-config.js';
import { ServingError } from '../../errors.js';
import type { ClientTls } from './negotiate-encryption.js';

type ClientTlsConfig = GeneralConfig['clientTls'];
type ServerTlsConfig = GeneralConfig['serverTls'];

const verifyingModes: readonly string[] = ['verify-ca', 'verify-full'];
const needingModes: readonly string[] = ['require', ...verifyingModes];

/** TLS for clients; undefined where it is disabled. Throws if the configuration is wrong. */
export function clientTlsOf(config: ClientTlsConfig): ClientTls | undefined {
  const { mode, caFile, certFile, ecdhCurve, dheParams } = config;
  if (mode === 'disable') return undefined;
  const material: TlsMaterial = {
    ...materialOf(config),
    ecdhCurve: ecdhCurve === 'auto' ? undefined : ecdhCurve,
    dhparam: dheParams === 'auto' ? 'auto' : undefined,
  };
  const context = contextOf('server', material, `the certificate ${certFile}`);
  const mayShow = caFile === undefined ? 'ignore' : 'ask';
  return {
    options: { context, clientCertificates: verifyingModes.includes(mode) ? 'require' : mayShow },
    endPoint: endPointOf(material.cert),
  };
}

function endPointOf(certificate: TlsMaterial['cert']): Buffer | undefined {
  return certificate === undefined ? undefined : tlsServerEndPoint(new X509Certificate(certificate).raw);
}

/** Clients without TLS are refused. */
export function needsTls({ mode }: ClientTlsConfig): boolean {
  return needingModes.includes(mode);
}

/** TLS for servers, with one context for all databases with the same configuration. */
export class ServerTlsContexts {
  #contexts: ServerContexts = new Map();

  /** Throws if the configuration is wrong. */
  tlsOf(config: ServerTlsConfig): DialTls {
    const { context } = addTo(this.#contexts, config);
    return { mode: config.mode, negotiation: config.negotiation, context };
  }

  /** Makes the contexts for these configurations, from files that are read again. Throws if one is wrong; nothing has changed then. */
  prepare(configs: Iterable<ServerTlsConfig>): ServerContexts {
    const contexts: ServerContexts = new Map();
    for (const config of configs) addTo(contexts, config);
    return contexts;
  }

  /** Uses these contexts from now on. */
  use(contexts: ServerContexts): void {
    this.#contexts = contexts;
  }

  /** Reads the files again, for later connections. Throws if one is wrong. */
  readAgain(): void {
    for (const { config, context } of this.#contexts.values()) {
      const problem = context.replace(serverMaterialOf(config));
      if (problem !== undefined) throw new ServingError(problem.message, problem);
    }
  }
}

/** Contexts by configuration, as JSON. */
type ServerContexts = Map<string, { readonly config: ServerTlsConfig; readonly context: TlsContext }>;

function addTo(contexts: ServerContexts, config: ServerTlsConfig): { readonly context: TlsContext } {
  const key = JSON.stringify(config);
  const known = contexts.get(key);
  if (known !== undefined) return known;
  const made = { config, context: contextOf('client', serverMaterialOf(config), 'serverTls') };
  contexts.set(key, made);
  return made;
}

/** Files that are read for a configuration. */
export function filesOf({
  certFile,
  keyFile,
  caFile,
}: ClientTlsConfig | ServerTlsConfig): (string | undefined)[] {
  return [certFile, keyFile, caFile];
}

function contextOf(role: TlsRole, material: TlsMaterial, what: string): TlsContext {
  try {
    return new TlsContext(role, material);
  } catch (error) {
    throw new ServingError(`TLS can't be used with ${what}: ${(error as Error).message}`, error);
  }
}

function materialOf(config: ClientTlsConfig | ServerTlsConfig): TlsMaterial {
  const { certFile, keyFile, caFile, protocols } = config;
  return {
    cert: contentOf(certFile),
    key: contentOf(keyFile),
    ca: contentOf(caFile),
    ciphers: ciphersOf(config),
    minVersion: protocols.min as TlsMaterial['minVersion'],
    maxVersion: protocols.max as TlsMaterial['maxVersion'],
  };
}

/** Half of a pair shows no server anything. */
function serverMaterialOf(config: ServerTlsConfig): TlsMaterial {
  const material = materialOf(config);
  const isPair = material.cert !== undefined && material.key !== undefined;
  return isPair ? material : { ...material, cert: undefined, key: undefined };
}

/** Node has one list for all versions, and turns off a version without an entry in it. A part that is not configured gets its default. */
function ciphersOf({ ciphers, tls13Ciphers }: ClientTlsConfig | ServerTlsConfig): string | undefined {
  return tls13Ciphers === undefined ? ciphers : `${tls13Ciphers}:${ciphers ?? usualUpTo12}`;
}

const usualUpTo12 = DEFAULT_CIPHERS.split(':')
  .filter((name) => !name.startsWith('TLS_'))
  .join(':');

function contentOf(file: string | undefined): Buffer | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ServingError(`${file} can't be read: ${(error as Error).message}`, error);
  }
}
