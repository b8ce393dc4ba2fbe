/** The part of a client's startup that another process has handled before it handed the connection over. */
export interface ReadAhead {
  /** Read from the socket, and not processed. */
  readonly bytes: Uint8Array;
  /** Requests for encryption that were answered with `N`. */
  readonly declined: readonly ('ssl' | 'gssenc')[];
  /** Counts towards the login timeout. */
  readonly waitedMs: number;
}

export const nothingRead: ReadAhead = { bytes: new Uint8Array(), declined: [], waitedMs: 0 };
