/** Where a command writes to, handed in so that a test can read it. */

export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  readonly hasColours: boolean;
  /** Whether someone watches standard error, so that a progress bar makes sense. */
  readonly showsProgress: boolean;
}

export function systemTerminal(): Terminal {
  // Who reads with `| head` has seen enough; that is not an error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    hasColours: process.stdout.isTTY === true && process.stdout.hasColors() && !process.env['NO_COLOR'],
    showsProgress: process.stderr.isTTY === true,
  };
}
