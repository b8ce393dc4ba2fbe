// Asks a page for what it shows, as a browser does.
import type { Frame, Snapshot } from '../../src/dashboard/snapshot.js';

/** The first event for a page that is opened now. */
export async function lookAt(base: string, password: string, subject?: string): Promise<Snapshot> {
  const which = subject === undefined ? '' : `?subject=${encodeURIComponent(subject)}`;
  const response = await fetch(`${base}/api/live${which}`, {
    headers: { authorization: `Bearer ${password}` },
  });
  let text = '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    const end = text.indexOf('\n\n');
    if (end === -1) continue;
    const frame = JSON.parse(text.slice('data: '.length, end)) as Frame;
    if (frame.kind === 'full') return frame.snapshot;
  }
  throw new Error('The stream ended before its first frame.');
}
