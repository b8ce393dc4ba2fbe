// A cancel request of node-postgres, sent as psql would: on a connection of its own.
import pg from 'pg';

/** Sends the client's key to this address. Resolves when the receiver has closed the connection. */
export async function sendCancelRequest(client: pg.Client, { host, port }: CancelTarget): Promise<void> {
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
  const { connection } = new pg.Client({ host, port }) as unknown as { connection: CancelConnection };
  connection.connect(port, host);
  connection.on('error', () => {});
  connection.on('connect', () => connection.cancel(processID, secretKey));
  await new Promise<void>((resolve) => connection.on('end', resolve));
}

export interface CancelTarget {
  readonly host: string;
  readonly port: number;
}

/** The part of a client that its types leave out. */
interface CancelConnection {
  connect(port: number, host: string): void;
  cancel(id: number, key: number): void;
  on(event: string, listener: () => void): void;
}
