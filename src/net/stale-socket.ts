/** The socket file that a process left behind when it ended without a chance to remove it. */
import { lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { ListenError } from './errors.js';

/** Removes the file if no process listens on it; refuses if one does, or if it is another kind of file. */
export async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new ListenError(path, `${error.message}.`, error);
  });
  if (found === undefined) return;
  if (!found.isSocket()) throw new ListenError(path, 'there is a file at that path which is no socket.');
  const answer = await tryToConnect(path);
  if (answer === 'ENOENT') return;
  if (answer === 'connected' || answer === 'EAGAIN')
    throw new ListenError(path, 'another process listens there.');
  if (answer !== 'ECONNREFUSED')
    throw new ListenError(
      path,
      `there is a socket already, and whether it is in use is not known (${answer}).`,
    );
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw new ListenError(path, `${error.message}.`, error);
  });
}

function tryToConnect(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('connect', () => {
      socket.destroy();
      resolve('connected');
    });
  });
}
