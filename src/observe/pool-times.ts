/** The times that a pool publishes, for code that records them. */
import { onMessages } from './pool-messages.js';

/** Takes times in milliseconds. */
export interface TimeRecorder {
  created(dialMs: number): void;
  waited(waitMs: number): void;
  used(useMs: number): void;
}

/** Records the times of one pool until the function that it returns is called. */
export function recordTimes(pool: object, recorder: TimeRecorder): () => void {
  return onMessages(pool, {
    'headgate:pool:opened': ({ dialMs }) => recorder.created(dialMs),
    'headgate:pool:acquired': ({ waitMs }) => recorder.waited(waitMs),
    'headgate:pool:released': ({ useMs }) => recorder.used(useMs),
  });
}
