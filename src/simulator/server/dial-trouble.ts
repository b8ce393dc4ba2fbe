/** Faults of dials for a while, asked at each dial whether they strike. */
import type { Random } from '../../kernel/random.js';
import type { Delay } from '../scenario/scenario.js';
import { draw } from '../time/chance.js';

/** Strikes this part of the dials of these services. */
export interface Strike {
  readonly services: ReadonlySet<string>;
  readonly fraction: number;
}

export interface SlowDials extends Strike {
  readonly delay: Delay;
}

export class DialTrouble {
  #slow: readonly SlowDials[] = [];
  #tokens: readonly Strike[] = [];

  begin(kind: 'slow', strike: SlowDials): () => void;
  begin(kind: 'token', strike: Strike): () => void;
  /** Returns what ends it. */
  begin(kind: 'slow' | 'token', strike: Strike): () => void {
    if (kind === 'slow') this.#slow = [...this.#slow, strike as SlowDials];
    else this.#tokens = [...this.#tokens, strike];
    return () => {
      this.#slow = this.#slow.filter((other) => other !== strike);
      this.#tokens = this.#tokens.filter((other) => other !== strike);
    };
  }

  /** How long a dial of this service takes instead of its usual time; undefined: as usual. */
  slowDialMs(service: string, random: Random): number | undefined {
    for (const slow of this.#slow) if (strikes(slow, service, random)) return draw(slow.delay, random);
    return undefined;
  }

  failsToken(service: string, random: Random): boolean {
    for (const strike of this.#tokens) if (strikes(strike, service, random)) return true;
    return false;
  }
}

function strikes({ services, fraction }: Strike, service: string, random: Random): boolean {
  return services.has(service) && random.next() < fraction;
}
