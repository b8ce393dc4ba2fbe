// The program's timers in the hands of a test, for pools without a server behind them.
import { onTestFinished, vi } from 'vitest';

/** Until the test is over, time passes only by `vi.advanceTimersByTimeAsync()`. */
export function useVirtualTime(): void {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
  });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}
