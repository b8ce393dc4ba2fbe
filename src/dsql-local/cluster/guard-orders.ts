/** Orders to the guard process of a server, and its reports: one line of JSON each. */
import type { ServerOwner } from './server-owner.js';

/** `unix`: a socket in a folder that only its owner may enter. `tcp`: the loopback, with a password. */
export type ServerAddress =
  | { readonly kind: 'unix'; readonly folder: string; readonly port: number }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number | undefined };

export interface GuardOrders {
  readonly initdb: string;
  readonly postgres: string;
  /** Made by `initdb` when it is not there yet. */
  readonly dataFolder: string;
  /** Exist and are empty; the guard owns them from here on and removes them at the end. The first is for small files. */
  readonly temporaryFolders: readonly [string, ...string[]];
  /** The user that runs the server; undefined: the present one. */
  readonly owner: ServerOwner | undefined;
  readonly address: ServerAddress;
  readonly user: string;
  /** Without one, everybody who reaches the address is trusted. */
  readonly password: string | undefined;
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** The server's log. */
  readonly logFile: string | undefined;
}

export type GuardReport =
  | { readonly state: 'ready'; readonly port: number; readonly pid: number }
  | { readonly state: 'failed' | 'ended'; readonly message: string };
