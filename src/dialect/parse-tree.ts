/** Reads PostgreSQL's parse tree in the shape of libpg-query: a node is an object whose only key is its kind. */
import type { A_Const, Node } from 'libpg-query';

type KeysOf<N> = N extends unknown ? keyof N : never;
export type NodeKind = KeysOf<Node>;
type BodyIn<N, K extends NodeKind> = N extends { [P in K]: infer B } ? B : never;
export type Body<K extends NodeKind> = BodyIn<Node, K>;

export function kindOf(node: Node): NodeKind {
  return Object.keys(node)[0] as NodeKind;
}

/** The body of a node of this kind; undefined for every other node. */
export function bodyOf<K extends NodeKind>(node: Node | undefined, kind: K): Body<K> | undefined {
  return (node as Record<string, unknown> | undefined)?.[kind] as Body<K> | undefined;
}

/** Bodies of the nodes of this kind in a list. */
export function bodiesOf<K extends NodeKind>(nodes: readonly Node[] | undefined, kind: K): Body<K>[] {
  return (nodes ?? []).map((node) => bodyOf(node, kind)).filter((body) => body !== undefined) as Body<K>[];
}

/** The parts of a dotted name. */
export function namesOf(nodes: readonly Node[] | undefined): string[] {
  return bodiesOf(nodes, 'String').map((name) => name.sval ?? '');
}

/** A whole number written as a constant; PostgreSQL leaves out a zero, and makes large ones floats. */
export function integerOf(node: Node | undefined): number | undefined {
  const constant: A_Const | undefined = bodyOf(node, 'A_Const');
  if (constant?.ival) return constant.ival.ival ?? 0;
  if (constant?.fval) return Number(constant.fval.fval);
  const integer = bodyOf(node, 'Integer');
  if (integer) return integer.ival ?? 0;
  const float = bodyOf(node, 'Float');
  return float ? Number(float.fval) : undefined;
}

export function stringOf(node: Node | undefined): string | undefined {
  return bodyOf(node, 'A_Const')?.sval?.sval ?? bodyOf(node, 'String')?.sval;
}
