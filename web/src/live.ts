/** The live numbers: a full frame first, then what changes. Sections that stay the same stay the same object. */
import { useEffect, useState } from 'preact/hooks';
import type { Frame, HistorySample, Snapshot } from '../../src/dashboard/snapshot.ts';
import { liveAddress } from './api.ts';

export interface Live {
  readonly snapshot: Snapshot;
  readonly history: readonly HistorySample[];
}

export type LiveState =
  | { readonly kind: 'loading' }
  | { readonly kind: 'live'; readonly live: Live; readonly isConnected: boolean };

const keptSamples = 300;

/** `lost`: the stream ended; the session may be over. */
export function useLive(subject: string, lost: () => void): LiveState {
  const [state, setState] = useState<LiveState>({ kind: 'loading' });
  useEffect(() => {
    setState({ kind: 'loading' });
    let live: Live | undefined;
    const stream = new EventSource(liveAddress(subject));
    stream.addEventListener('message', ({ data }: MessageEvent<string>) => {
      live = apply(live, JSON.parse(data) as Frame);
      if (live !== undefined) setState({ kind: 'live', live, isConnected: true });
    });
    stream.addEventListener('over', lost);
    stream.addEventListener('error', () => {
      if (live !== undefined) setState({ kind: 'live', live, isConnected: false });
      lost();
    });
    return () => stream.close();
  }, [subject]);
  return state;
}

function apply(before: Live | undefined, frame: Frame): Live | undefined {
  if (frame.kind === 'full') return { snapshot: frame.snapshot, history: frame.history };
  if (before === undefined) return undefined;
  const history =
    frame.sample === null ? before.history : [...before.history, frame.sample].slice(-keptSamples);
  return { snapshot: { ...before.snapshot, ...frame.changed }, history };
}
