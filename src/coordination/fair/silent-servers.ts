/**
 * Servers that accept connections and do not answer. Every pool that leads there would hold a lease for each attempt, until its own timeout
 * ends it: while others wait, one pool at a time tries, and what the others try can be given up.
 */
import type { FairMember } from './fair-member.js';

interface Silence {
  /** When the attempt began that was not answered. */
  readonly since: number;
  /** The member that tries, or did last. */
  probe: FairMember;
  /** Whether it tries, as of the last look, or of what it has been given or given back since. */
  isTried: boolean;
  /** When somebody wanted a connection last. */
  wantedAt: number;
}

/** A server that nobody has wanted anything of for so long is forgotten. */
const forgottenAfterMs = 60_000;

export class SilentServers {
  readonly #silences = new Map<string, Silence>();

  get size(): number {
    return this.#silences.size;
  }

  /** Looks which servers do not answer. */
  look(holding: Iterable<FairMember>, waiting: Iterable<FairMember>, now: number, hangsAfter: number): void {
    const openedAt = new Map<string, number>();
    const hanging: FairMember[] = [];
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

  #noteWanted(member: FairMember, now: number): void {
    const silence = this.#of(member);
    if (silence !== undefined) silence.wantedAt = now;
  }

  #of({ tenant }: FairMember): Silence | undefined {
    return tenant.server === undefined ? undefined : this.#silences.get(tenant.server);
  }

  /** Whether it is worth a connection that others could use: its server answers, or nobody tries. */
  mayDial(member: FairMember): boolean {
    return this.#silences.size === 0 || this.#of(member)?.isTried !== true;
  }

  /** A member opens a connection. */
  granted(member: FairMember): void {
    if (this.#silences.size === 0) return;
    const silence = this.#of(member);
    if (silence === undefined) return;
    silence.probe = member;
    silence.isTried = true;
  }

  /** A member has given something back. */
  released(member: FairMember): void {
    if (this.#silences.size === 0) return;
    const silence = this.#of(member);
    if (silence?.probe === member) silence.isTried = member.pending > 0;
  }

  /** Whether what it opens can be given up: somebody else tries, too. */
  isInVain(member: FairMember): boolean {
    const silence = this.#of(member);
    return silence !== undefined && member.pending > (silence.probe === member ? 1 : 0);
  }

  /** How many it can have use for: what it has, and one if it is the one who tries. */
  mostOf(member: FairMember): number {
    const silence = this.#of(member);
    if (silence === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(0, member.held - member.pending) + (silence.probe === member ? 1 : 0);
  }
}
