// For tests in which the program itself throws where nobody can catch it: collects what would have ended the process.

export interface Uncaught extends AsyncDisposable {
  /** The message of the next exception that nobody caught. */
  next(): Promise<string>;
}

/** From here to the end of the block, uncaught exceptions come here and not to the test runner. */
export function collectUncaught(): Uncaught {
  const runners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  const messages: string[] = [];
  process.on('uncaughtException', (error) => messages.push(error.message));
  return {
    async next() {
      while (messages.length === 0) await new Promise((resolve) => setImmediate(resolve));
      return messages.shift() as string;
    },
    async [Symbol.asyncDispose]() {
      process.removeAllListeners('uncaughtException');
      for (const runner of runners) process.on('uncaughtException', runner);
    },
  };
}
