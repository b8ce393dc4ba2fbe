/** The limit that binds now, in one sentence, and what to do about it. Screen readers hear each change. */
import { useEffect, useState } from 'preact/hooks';
import type { Verdict } from '../../src/dashboard/snapshot.ts';
import { memo } from './memo.tsx';

const titles = { good: 'All is well', busy: 'Busy', bad: 'Needs attention' } as const;

export const VerdictBanner = memo(({ verdict }: { readonly verdict: Verdict }) => {
  return (
    <section class={`verdict ${verdict.level}`} aria-label="What binds now">
      <span class="verdict-mark" aria-hidden="true" />
      <div>
        <p class="verdict-title">{titles[verdict.level]}</p>
        <p class="verdict-sentence">{verdict.sentence}</p>
        {verdict.level !== 'good' && <p class="verdict-advice">{verdict.advice}</p>}
      </div>
      <Announcement verdict={verdict} />
    </section>
  );
});

/** Numbers change each second; only another cause is worth an interruption. */
function Announcement({ verdict }: { readonly verdict: Verdict }) {
  const key = `${verdict.level} ${verdict.what}`;
  const [said, setSaid] = useState('');
  useEffect(() => setSaid(verdict.sentence), [key]);
  return (
    <p class="visually-hidden" role="status">
      {said}
    </p>
  );
}
