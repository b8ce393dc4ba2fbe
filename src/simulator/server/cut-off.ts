/** Services that can't reach something, and how many faults are to blame for each. */
export class CutOff {
  readonly #causes = new Map<string, number>();

  has(service: string): boolean {
    return this.#causes.has(service);
  }

  add(service: string): void {
    this.#causes.set(service, (this.#causes.get(service) ?? 0) + 1);
  }

  remove(service: string): void {
    const causes = (this.#causes.get(service) ?? 0) - 1;
    if (causes > 0) this.#causes.set(service, causes);
    else this.#causes.delete(service);
  }
}
