/** Starts the PostgreSQL behind the stand-in: on a Unix socket that only this user can reach, with data in memory or kept. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { defaultSettings, fixedSettings, type PostgresSettings } from './cluster-settings.js';
import type { PostgresPrograms } from './find-postgres.js';
import { folderInMemory, temporaryFolder } from './folders.js';
import type { ServerAddress } from './guard-orders.js';
import { startGuardedServer } from './guarded-server.js';
import { keptPassword, prepareKeptData, randomPassword } from './kept-data.js';
import { usableNativeFolder } from './npm-programs.js';
import { findServerOwner } from './server-owner.js';

export interface ClusterOptions {
  readonly programs: PostgresPrograms;
  /** Kept after the end and used again by the next start. Without one, data is in memory where there is enough, and removed. */
  readonly dataFolder?: string | undefined;
  /** PostgreSQL's settings, such as `max_connections` or `deadlock_timeout`. Settings that the stand-in relies on stay as they are. */
  readonly settings?: PostgresSettings | undefined;
  /** `tcp`: the loopback with a password, also where Unix sockets exist. Default: a Unix socket except on Windows. */
  readonly transport?: 'unix' | 'tcp' | undefined;
}

/** A PostgreSQL 16 that runs. It ends with `stop()`, and together with this process whatever way that ends. */
export interface Cluster {
  /** The `host` of pg and libpq: the folder of the Unix socket, or `127.0.0.1`. */
  readonly host: string;
  /** The folder of the Unix socket; undefined when the server listens on the loopback. */
  readonly socketFolder: string | undefined;
  readonly port: number;
  /** A superuser. */
  readonly user: string;
  /** Undefined when everybody who reaches the socket is trusted. */
  readonly password: string | undefined;
  /** `16.14` */
  readonly version: string;
  /** Data folder of PostgreSQL itself. */
  readonly dataFolder: string;
  readonly logFile: string;
  /** For other files of this run, such as certificates: only its owner may enter it, and it is removed at the end. */
  readonly temporaryFolder: string;
  /** Process id of the server. */
  readonly pid: number;
  /** Resolves when the server has ended: undefined after `stop()`, else why. */
  readonly ended: Promise<string | undefined>;
  stop(): Promise<void>;
}

const user = 'postgres';
const socketPort = 5432;

/** Resolves when the server accepts connections; throws a `ClusterStartError`. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { programs, transport = process.platform === 'win32' ? 'tcp' : 'unix' } = options;
  const owner = findServerOwner();
  const forAnotherUser = owner !== undefined;
  const kept =
    options.dataFolder === undefined ? undefined : prepareKeptData(options.dataFolder, forAnotherUser);
  const folder = temporaryFolder({
    forAnotherUser,
    socketPort: transport === 'unix' ? socketPort : undefined,
  });
  const memory = kept === undefined ? folderInMemory(forAnotherUser) : undefined;
  const temporaryFolders = [folder, ...(memory === undefined ? [] : [memory])] as const;

  const address: ServerAddress =
    transport === 'unix'
      ? { kind: 'unix', folder, port: socketPort }
      : { kind: 'tcp', host: '127.0.0.1', port: undefined };
  const dataFolder = kept ?? join(memory ?? folder, 'data');
  const logFile = kept === undefined ? join(folder, 'postgres.log') : `${kept}.log`;
  const password =
    transport === 'unix' ? undefined : kept === undefined ? randomPassword() : keptPassword(kept);
  const server = await startGuardedServer({
    ...usablePrograms(programs, forAnotherUser, temporaryFolders),
    dataFolder,
    temporaryFolders: [...temporaryFolders],
    owner,
    address,
    user,
    password,
    settings: { ...defaultSettings, ...options.settings, ...fixedSettings },
    logFile,
  });
  return {
    host: address.kind === 'unix' ? address.folder : address.host,
    socketFolder: address.kind === 'unix' ? address.folder : undefined,
    port: server.port,
    user,
    password,
    version: programs.version,
    dataFolder,
    logFile,
    temporaryFolder: folder,
    pid: server.pid,
    ended: server.ended,
    stop: () => server.stop(),
  };
}

function usablePrograms(
  { binFolder, nativeFolder }: PostgresPrograms,
  forAnotherUser: boolean,
  temporaryFolders: readonly [string, ...string[]],
): { initdb: string; postgres: string } {
  try {
    const folder =
      nativeFolder === undefined
        ? binFolder
        : join(usableNativeFolder(nativeFolder, forAnotherUser, temporaryFolders[0]), 'bin');
    return { initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres') };
  } catch (error) {
    for (const path of temporaryFolders) rmSync(path, { recursive: true, force: true });
    throw error;
  }
}
