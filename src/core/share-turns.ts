/**
 * Turns, for when there are more users than slots: a line, in which whoever has had its turn goes to the back. A user's
 * place in it is one number, `servedIn`.
 */
import type { Memory } from './share-memory.js';
import type { ShareUser } from './share-request.js';

/** More rounds than there will ever be. */
const inFront = 2 ** 40;

/** The places of the users, the one whose turn it is first. Between two rounds, whoever has its turn keeps it. */
export function inTurn(users: readonly ShareUser[], known: readonly Memory[], isRound: boolean): number[] {
  const isHavingIt = ({ share }: Memory): boolean => !isRound && share > 0;
  const since = Float64Array.from(users, ({ waitingSince }) => waitingSince ?? Number.POSITIVE_INFINITY);
  const servedIn = Float64Array.from(known, (memory) => memory.servedIn - (isHavingIt(memory) ? inFront : 0));
  const compare = (a: number, b: number): number => {
    if (since[a] !== since[b]) return (since[a] as number) < (since[b] as number) ? -1 : 1;
    if (servedIn[a] !== servedIn[b]) return (servedIn[a] as number) - (servedIn[b] as number);
    return (users[a] as ShareUser).key < (users[b] as ShareUser).key ? -1 : 1;
  };
  return users.map((_, place) => place).sort(compare);
}

/** One that came after so many rounds: ahead of those served in the last, behind those who have waited for longer. */
export function standInLine(memory: Memory, rounds: number): void {
  memory.servedIn = rounds - 0.5;
}

/** Those who have had a turn in this round, in the order in which they had it. */
export function sendToTheBack(turns: readonly number[], known: readonly Memory[], round: number): void {
  for (const [n, place] of turns.entries()) {
    const memory = known[place] as Memory;
    if (memory.share > 0) memory.servedIn = round + n / (2 * turns.length);
  }
}
