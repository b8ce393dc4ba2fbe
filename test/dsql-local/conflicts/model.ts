/** Aurora DSQL's transactions as a model: snapshots, own writes, and who conflicts with whom at COMMIT. */

export interface Parent {
  readonly code: number | null;
  readonly v: number;
}

export interface Child {
  readonly parent: number;
  readonly v: number;
}

interface State {
  readonly parents: Map<number, Parent>;
  readonly children: Map<number, Child>;
}

/** `strong`: INSERT, DELETE, UPDATE of a key, FOR UPDATE. `weak`: UPDATE of other columns. `share`: FOR KEY SHARE. */
type Mode = 'strong' | 'weak' | 'share';

interface Claim {
  readonly key: string;
  readonly mode: Mode;
}

/** What a statement answers: its count, or its SQLSTATE. */
export type Answer = { readonly count: number } | { readonly code: string };

const excluded = (one: Mode, other: Mode): boolean =>
  one === 'strong' || other === 'strong' || (one === 'weak' && other === 'weak');

export class Model {
  #state: State = { parents: new Map(), children: new Map() };
  #commits: { readonly claims: readonly Claim[] }[] = [];

  get state(): State {
    return copyOf(this.#state);
  }

  begin(): ModelTransaction {
    return new ModelTransaction(copyOf(this.#state), this.#commits.length);
  }

  /** False: OC000. */
  commit(transaction: ModelTransaction): boolean {
    const newer = this.#commits.slice(transaction.snapshot).flatMap(({ claims }) => claims);
    const { claims, view } = transaction;
    if (
      claims.some((mine) => newer.some((other) => other.key === mine.key && excluded(mine.mode, other.mode)))
    )
      return false;
    const next = copyOf(this.#state);
    for (const id of transaction.parents) take(next.parents, view.parents, id);
    for (const id of transaction.children) take(next.children, view.children, id);
    this.#state = next;
    this.#commits.push({ claims });
    return true;
  }
}

export class ModelTransaction {
  readonly view: State;
  readonly snapshot: number;
  readonly claims: Claim[] = [];
  readonly parents = new Set<number>();
  readonly children = new Set<number>();

  constructor(view: State, snapshot: number) {
    this.view = view;
    this.snapshot = snapshot;
  }

  insertParent(id: number, code: number | null, v: number): Answer {
    const { parents } = this.view;
    if (parents.has(id) || this.#hasCode(code)) return { code: '23505' };
    parents.set(id, { code, v });
    this.#claimParent(id, 'strong');
    if (code !== null) this.#claim(`code ${code}`, 'strong');
    return { count: 1 };
  }

  upsertParent(id: number, v: number): Answer {
    const row = this.view.parents.get(id);
    if (row === undefined) return this.insertParent(id, null, v);
    return this.updateParents([id], v);
  }

  /** Of those that exist. */
  updateParents(ids: readonly number[], v: number): Answer {
    const found = ids.filter((id) => this.view.parents.has(id));
    for (const id of found) {
      this.view.parents.set(id, { ...(this.view.parents.get(id) as Parent), v });
      this.#claimParent(id, 'weak');
    }
    return { count: found.length };
  }

  updateCode(id: number, code: number): Answer {
    const row = this.view.parents.get(id);
    if (row === undefined) return { count: 0 };
    if (row.code !== code && this.#hasCode(code)) return { code: '23505' };
    this.view.parents.set(id, { ...row, code });
    this.#claimParent(id, row.code === code ? 'weak' : 'strong');
    if (row.code !== code) this.#claim(`code ${code}`, 'strong');
    return { count: 1 };
  }

  /** Children go with it. */
  deleteParent(id: number): Answer {
    if (!this.view.parents.delete(id)) return { count: 0 };
    this.#claimParent(id, 'strong');
    for (const [child, { parent }] of this.view.children) if (parent === id) this.#removeChild(child);
    return { count: 1 };
  }

  lockParent(id: number, mode: 'strong' | 'share'): Answer {
    if (!this.view.parents.has(id)) return { count: 0 };
    this.#claim(`parent ${id}`, mode);
    return { count: 1 };
  }

  insertChild(id: number, parent: number, v: number): Answer {
    if (this.view.children.has(id)) return { code: '23505' };
    if (!this.view.parents.has(parent)) return { code: '23503' };
    this.view.children.set(id, { parent, v });
    this.#claimChild(id, 'strong');
    this.#claim(`parent ${parent}`, 'share');
    return { count: 1 };
  }

  updateChildren(ids: readonly number[], v: number): Answer {
    const found = ids.filter((id) => this.view.children.has(id));
    for (const id of found) {
      this.view.children.set(id, { ...(this.view.children.get(id) as Child), v });
      this.#claimChild(id, 'weak');
    }
    return { count: found.length };
  }

  deleteChild(id: number): Answer {
    if (!this.view.children.has(id)) return { count: 0 };
    this.#removeChild(id);
    return { count: 1 };
  }

  /** INSERT .. SELECT: a parent for each child, with its id and 50 more. */
  copyChildren(): Answer {
    const ids = [...this.view.children.keys()].map((id) => id + 50);
    if (ids.some((id) => this.view.parents.has(id))) return { code: '23505' };
    for (const id of ids) this.insertParent(id, null, 7);
    return { count: ids.length };
  }

  #hasCode(code: number | null): boolean {
    return code !== null && [...this.view.parents.values()].some((row) => row.code === code);
  }

  #removeChild(id: number): void {
    this.view.children.delete(id);
    this.#claimChild(id, 'strong');
  }

  #claimParent(id: number, mode: Mode): void {
    this.parents.add(id);
    this.#claim(`parent ${id}`, mode);
  }

  #claimChild(id: number, mode: Mode): void {
    this.children.add(id);
    this.#claim(`child ${id}`, mode);
  }

  #claim(key: string, mode: Mode): void {
    this.claims.push({ key, mode });
  }
}

function take<T>(into: Map<number, T>, from: ReadonlyMap<number, T>, id: number): void {
  const row = from.get(id);
  if (row === undefined) into.delete(id);
  else into.set(id, row);
}

function copyOf({ parents, children }: State): State {
  return { parents: new Map(parents), children: new Map(children) };
}
