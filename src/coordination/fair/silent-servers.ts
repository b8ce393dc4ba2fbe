/**
 * Servers that accept connections and do not answer. Every pool of such a server would hold a lease for each attempt
 * until its own timeout. While others wait, one pool at a time tries, and the attempts of the others can be given up.
 */
import type { Member } from './fair-seats.js';

interface Silence {
  /** Start of the attempt that was not answered. */
  readonly since: number;
  /** The member that tries, or did last. */
  probe: Member;
  /** True if that member tries, as of the last round or of its grants and releases since. */
  isTried: boolean;
  /** Time of the last request for a connection. */
  wantedAt: number;
}

/** A server without requests for this long is forgotten. */
const forgottenAfterMs = 60_000;

export class SilentServers {
  readonly #silences = new Map<string, Silence>();

  get size(): number {
    return this.#silences.size;
  }

  /** Finds servers that do not answer. */
  look(holding: Iterable<Member>, waiting: Iterable<Member>, now: number, hangsAfter: number): void {
    const openedAt = new Map<string, number>();
    const hanging: Member[] = [];
    for (const member of holding) {
      const { server } = member.tenant;
      if (server === undefined) continue;
      openedAt.set(server, Math.max(member.openedAt, openedAt.get(server) ?? Number.NEGATIVE_INFINITY));
      const { dialingSince } = member;
      if (dialingSince !== undefined && now - dialingSince >= hangsAfter) hanging.push(member);
    }
    for (const member of hanging) {
      const server = member.tenant.server as string;
      const since = member.dialingSince as number;
      if (!this.#silences.has(server) && (openedAt.get(server) as number) < since)
        this.#silences.set(server, { since, probe: member, isTried: true, wantedAt: now });
    }
    if (this.#silences.size === 0) return;
    for (const wanting of [hanging, waiting]) for (const member of wanting) this.#noteWanted(member, now);
    for (const [server, silence] of this.#silences) {
      const { since, wantedAt, probe } = silence;
      silence.isTried = probe.pending > 0;
      const hasAnswered = Math.max(probe.openedAt, openedAt.get(server) ?? probe.openedAt) >= since;
      if (hasAnswered || now - wantedAt >= forgottenAfterMs) this.#silences.delete(server);
    }
  }

  #noteWanted(member: Member, now: number): void {
    const silence = this.#of(member);
    if (silence !== undefined) silence.wantedAt = now;
  }

  #of({ tenant }: Member): Silence | undefined {
    return tenant.server === undefined ? undefined : this.#silences.get(tenant.server);
  }

  /** True if a dial is worth a connection that others could use: the server answers, or no other member tries. */
  mayDial(member: Member): boolean {
    return this.#silences.size === 0 || this.#of(member)?.isTried !== true;
  }

  /** A member opens a connection. */
  granted(member: Member): void {
    if (this.#silences.size === 0) return;
    const silence = this.#of(member);
    if (silence === undefined) return;
    silence.probe = member;
    silence.isTried = true;
  }

  /** A member has given something back. */
  released(member: Member): void {
    if (this.#silences.size === 0) return;
    const silence = this.#of(member);
    if (silence?.probe === member) silence.isTried = member.pending > 0;
  }

  /** True if its dials can be given up, because another member tries too. */
  isInVain(member: Member): boolean {
    const silence = this.#of(member);
    return silence !== undefined && member.pending > (silence.probe === member ? 1 : 0);
  }

  /** The number it can use: what it has, and one more if it is the member that tries. */
  mostOf(member: Member): number {
    const silence = this.#of(member);
    if (silence === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(0, member.held - member.pending) + (silence.probe === member ? 1 : 0);
  }
}
