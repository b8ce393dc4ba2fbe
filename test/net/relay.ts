// Passes bytes on between two transports as the pooler does, with back-pressure.
import type { Transport } from '../../src/net/transport.js';

/** Ends when both sides have ended, or when one is gone. */
export function relay(one: Transport, other: Transport): Promise<void> {
  return new Promise((resolve) => {
    let open = 2;
    const closed = (): void => {
      open -= 1;
      if (open === 0) resolve();
    };
    passOn(one, other, closed);
    passOn(other, one, closed);
    one.start();
    other.start();
  });
}

function passOn(from: Transport, to: Transport, closed: () => void): void {
  from.listener = {
    bytesCame(source, start, end) {
      if (!to.send(source, start, end)) from.pauseReading();
    },
    drained: () => to.resumeReading(),
    ended: () => to.end(),
    closed(error) {
      if (error === undefined) to.end();
      else to.destroy();
      closed();
    },
  };
}
