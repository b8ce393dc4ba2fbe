/** Opens all addresses at which connections are accepted. */
import { ListenError } from './errors.js';
import type { ListeningSocket } from './listening-socket.js';

/**
 * Returns the open sockets. An address that this machine does not have, such as one that moves between machines, is
 * `missing` and left out if another one can be reached over the network. On any other failure none is open: rejects with
 * a `ListenError`. A port that is taken is most likely a second pooler, which should not take half of the clients.
 */
export async function openSockets(
  sockets: readonly ListeningSocket[],
  missing: (error: ListenError) => void,
): Promise<ListeningSocket[]> {
  const outcomes = await Promise.allSettled(sockets.map((socket) => socket.open()));
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  const open = sockets.filter((_, index) => outcomes[index]?.status === 'fulfilled');
  const absent = failures.filter(isOfNoSuchAddress);
  const [refusal] = failures.filter((error) => !isOfNoSuchAddress(error));
  const hasNetwork = open.some(({ endpoint }) => endpoint.kind === 'tcp');
  if (refusal !== undefined || (absent.length > 0 && !hasNetwork)) {
    for (const socket of sockets) socket.close();
    throw refusal ?? absent[0];
  }
  for (const socket of sockets) if (!open.includes(socket)) socket.close();
  for (const error of absent) missing(error);
  return open;
}

function isOfNoSuchAddress(error: unknown): error is ListenError {
  if (!(error instanceof ListenError)) return false;
  return (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRNOTAVAIL';
}
