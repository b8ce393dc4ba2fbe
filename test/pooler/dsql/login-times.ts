// When logins came to the stand-in, and whether a token bucket would have let all of them in.
import type { DsqlLocalOptions, LoginEvent } from '../../../src/dsql-local.js';

export interface TimedLogin {
  readonly atMs: number;
  readonly user: string;
  readonly code: string | undefined;
}

export class LoginTimes {
  readonly logins: TimedLogin[] = [];
  readonly onLogin: NonNullable<DsqlLocalOptions['onLogin']> = ({ user, refusal }: LoginEvent) => {
    this.logins.push({ atMs: performance.now(), user, code: refusal?.code });
  };

  /** The fewest permits that a bucket ever had left, if each login took one when it came. Below 0, it was exceeded. */
  fewestLeft({ rate, burst }: { readonly rate: number; readonly burst: number }): number {
    let [left, fewest] = [burst, burst];
    let before = this.logins[0]?.atMs ?? 0;
    for (const { atMs } of this.logins) {
      left = Math.min(burst, left + ((atMs - before) * rate) / 1_000) - 1;
      before = atMs;
      fewest = Math.min(fewest, left);
    }
    return fewest;
  }
}
