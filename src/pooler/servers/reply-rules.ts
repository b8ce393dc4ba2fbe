/** Which server messages can be part of which answer. A message that fits nothing means that both sides are out of step. */
import { Backend as From } from '../../wire/message-types.js';
import { Asked } from './reply-queue.js';

const asksForRows = [Asked.query, Asked.ownQuery, Asked.execute, Asked.ownExecute];
const isQuery = [Asked.query, Asked.ownQuery];
const describesStatement = [Asked.describeStatement, Asked.ownDescribe];
const takesCopies = [Asked.query, Asked.execute];

const answers: readonly (readonly [type: number, to: readonly Asked[]])[] = [
  [From.parseComplete, [Asked.parse, Asked.ownParse]],
  [From.bindComplete, [Asked.bind, Asked.standInBind, Asked.ownBind]],
  [From.closeComplete, [Asked.close, Asked.ownClose]],
  [From.parameterDescription, describesStatement],
  [From.rowDescription, [...isQuery, ...describesStatement, Asked.describePortal]],
  [From.noData, [...describesStatement, Asked.describePortal]],
  [From.dataRow, asksForRows],
  [From.commandComplete, asksForRows],
  [From.emptyQuery, asksForRows],
  [From.portalSuspended, [Asked.execute]],
  [From.copyInResponse, takesCopies],
  [From.copyOutResponse, takesCopies],
  [From.copyData, takesCopies],
  [From.copyDone, takesCopies],
  [From.functionCallResponse, [Asked.query]],
  [From.readyForQuery, [...isQuery, Asked.sync, Asked.ownSync]],
];

/** A bit for each of `Asked`, by message type. */
const fitting = new Uint32Array(256);
for (const [type, to] of answers)
  for (const asked of to) fitting[type] = (fitting[type] as number) | (1 << asked);

/** True if a message of this type can come while `head` is answered next; 0: nothing is owed. */
export function isAnswerTo(type: number, head: Asked | 0): boolean {
  return (((fitting[type] as number) >>> head) & 1) === 1;
}
