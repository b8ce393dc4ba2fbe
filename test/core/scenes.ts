// Small things that the scenes of the engine share.
import { dialMs, type Manners } from '../support/fake-server.js';
import { type Caller, VirtualWorld } from '../support/virtual-world.js';

export const minute = 60_000;

/** A server that answers nothing by itself; the test does. */
export const silent = (): Manners => ({
  onDial: () => {},
  onAbandon: () => {},
  onClose: () => {},
  onCheck: () => {},
});

export function outcomes(callers: readonly Caller[]): string {
  return callers.map((caller) => caller.outcome).join(' ');
}

export function reasons(world: VirtualWorld): Record<string, number> {
  return Object.fromEntries(world.server.discards);
}

/** A world in which `count` connections are idle. */
export function withIdle(
  count: number,
  options: ConstructorParameters<typeof VirtualWorld>[0],
): VirtualWorld {
  const world = new VirtualWorld(options);
  const callers = world.askMany(count);
  world.advance(dialMs);
  for (const caller of callers) caller.release();
  return world;
}
